"""Finds the place in the user's own program: file and line, or notebook cell and line."""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

_PYSTREAMS: Final = f"{Path(__file__).parent}/"
_STANDARD_LIBRARY: Final = f"{sysconfig.get_path('stdlib')}/"
_INSTALLED: Final = tuple(f"{sysconfig.get_path(name)}/" for name in ("purelib", "platlib"))

#: Folders of code that is not the user's: pystreams, Python, and libraries that call them or are called by them.
_LIBRARIES: Final = tuple(
    f"{folder}{name}/"
    for folder in _INSTALLED
    for name in (
        "pyspark",
        "py4j",
        "pyarrow",
        "typer",
        "click",
        "msgspec",
        "_pytest",
        "pluggy",
        "IPython",
        "ipykernel",
    )
)

#: Code that was typed in or given as text is the user's; other code without a file is generated, or Python's own.
_TYPED: Final = re.compile(r"<(stdin|python-input-\d+|ipython-input-.+)>")

#: The file name of ``python -c`` code, and of code that dataclasses generate.
_TEXT: Final = "<string>"


class CodeLine(NamedTuple):
    """A line of a program. ``str`` gives ``shop/app.py:12``, or ``In [3], line 2`` in a notebook."""

    file: str
    line: int
    #: The number of the cell when it ran; None outside of a notebook.
    cell: int | None

    @classmethod
    def of(cls, file: str, line: int) -> CodeLine:
        return cls(file, line, _cell_number(file))

    def __str__(self) -> str:
        if self.cell is not None:
            return f"In [{self.cell}], line {self.line}"
        return f"{self.file}, line {self.line}" if self.file.startswith("<") else f"{self.file}:{self.line}"


class Call(NamedTuple):
    """A call of a public function or method of pystreams: its name, and the line of the program."""

    function: str
    place: CodeLine


class Cell(NamedTuple):
    """One run of a cell of a notebook. ``identity`` is the same when the cell is run again."""

    identity: str
    number: int


def is_the_users(file: str) -> bool:
    """Whether code belongs to the user, and not to pystreams, Python, or a library between them and the user."""
    if file.startswith("<"):
        return _TYPED.fullmatch(file) is not None
    if file.startswith((_PYSTREAMS, *_LIBRARIES)) or file.endswith((".pyx", ".pxi")):
        return False
    return file.startswith(_INSTALLED) or not file.startswith(_STANDARD_LIBRARY)


def from_user_code(error: BaseException) -> bool:
    """Whether the user's code was running when an exception was raised."""
    return any(is_the_users(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(error.__traceback__))


def caller() -> CodeLine | None:
    """The line of the user's program that called pystreams. None if a command, a thread or a test runner called it."""
    call = users_call()
    return None if call is None else call.place


def users_call() -> Call | None:
    """The call of pystreams in the user's program that is running now. None: as for ``caller``."""
    function = ""
    for frame in _frames():
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if is_the_users(file) or (file == _TEXT and frame.f_globals.get("__name__") == "__main__"):
            return Call(function, CodeLine.of(file, frame.f_lineno))
        if file.startswith(_LIBRARIES):
            return None
        if file.startswith(_PYSTREAMS) and name[0] not in "_<":
            function = name
    return None


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def running_cell() -> Cell | None:
    """The notebook or IPython cell that is running."""
    shell = _shell()
    if shell is None:
        return None
    number = int(shell.execution_count)
    metadata = _parent_message(shell).get("metadata", {})
    # Some front ends do not name their cells: then the cell's text is its identity.
    return Cell(str(metadata.get("cellId") or shell.user_ns["In"][-1]), number)


def in_notebook() -> bool:
    """Whether the program runs in the kernel of a notebook. IPython in a terminal is none."""
    return getattr(_shell(), "kernel", None) is not None


def _parent_message(shell: Any) -> dict[str, Any]:
    """The front end's message that runs the cell; empty in a terminal."""
    get = getattr(shell, "get_parent", None)
    return dict(get() or {}) if get is not None else {}


def _cell_number(file: str) -> int | None:
    """The number of the cell whose code has this file name."""
    shell = _shell()
    named = None if shell is None else shell.compile.format_code_name(file)
    found = None if named is None else re.fullmatch(r"In\[(\d+)\]", named[1])
    return None if found is None else int(found[1])


def _shell() -> Any:
    """IPython's shell, if the program runs in one. IPython is not imported for this."""
    ipython = sys.modules.get("IPython")
    get = getattr(ipython, "get_ipython", None)
    return None if get is None else get()
