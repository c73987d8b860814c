"""The lines of a file or of standard input, and how far they have been read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from pystreams.cli.terminal.console import messages
from pystreams.errors import ConfigError, SerializationError


class InputLines:
    """Lines, one by one. Raises ``SerializationError`` for bytes that are not UTF-8."""

    def __init__(self, text: TextIO, name: str) -> None:
        self.name = name
        self._text = text
        #: Whether a person types the lines.
        self.typed = text.isatty()
        self.size_bytes = _size(text)

    def __iter__(self) -> Iterator[str]:
        read = 0
        try:
            for line in self._text:
                read += 1
                yield line
        except UnicodeDecodeError as error:
            raise SerializationError(
                f"{self.name} is not text",
                where=f"line {read + 1} or after",
                why=f"it is not UTF-8: {error}",
                hint="write bytes in hex: --value-type hex",
            ) from None

    def position_bytes(self) -> int:
        """The number of bytes read from the file; only files of known size have it."""
        return self._text.buffer.tell()


@contextmanager
def input_lines(file: Path | None, *, csv: bool) -> Iterator[InputLines]:
    """The lines of ``file``, or of standard input. Raises ``ConfigError`` for a file that cannot be read."""
    if file is None:
        if sys.stdin.isatty():
            messages().print("Each line is a record. End with Ctrl-D.", style="dim")
        if isinstance(sys.stdin, TextIOWrapper):
            # Read standard input as UTF-8 like a file, whatever the locale is.
            sys.stdin.reconfigure(encoding="utf-8-sig", newline="" if csv else None)
        yield InputLines(sys.stdin, "standard input")
        return
    try:
        # The CSV reader handles line ends within quotes.
        text = file.open(encoding="utf-8-sig", newline="" if csv else None)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read", why=str(error)) from None
    with text:
        yield InputLines(text, str(file))


def _size(text: TextIO) -> int | None:
    try:
        found = os.fstat(text.fileno())
    except (OSError, ValueError, AttributeError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
