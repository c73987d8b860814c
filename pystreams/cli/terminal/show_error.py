"""The output for an error: what happened, where, why, and what to do next."""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Sequence
from typing import Final

from pystreams.cli.terminal.console import messages
from pystreams.cli.terminal.journal import is_journal
from pystreams.cli.terminal.logs import command_log, logs_json, write_line
from pystreams.cli.terminal.user_lines import user_lines
from pystreams.errors import StreamsError

_LOG_OPTIONS: Final = ("--bootstrap-servers", "--embedded-log")


def on_the_same_log(hint: str, arguments: Sequence[str]) -> str:
    """The hint, whose commands get the log options of the failed command (``arguments``), unless they have some."""
    options: list[str] = []
    for index, argument in enumerate(arguments):
        if argument in _LOG_OPTIONS:
            options += arguments[index : index + 2]
        elif argument.partition("=")[0] in _LOG_OPTIONS:
            options.append(argument)

    def completed(found: re.Match[str]) -> str:
        command, rest = found.groups()
        if any(option in rest for option in _LOG_OPTIONS):
            return found[0]
        return shlex.join([*command.split(), *options]) + rest

    return re.sub(r"(pystreams topics \w+)([^;`\n]*)", completed, hint)


def show_error(error: StreamsError, arguments: Sequence[str] = ()) -> None:
    """Print what happened, where, why, and what to do next, one line each. ``arguments`` are those of the command."""
    show_parts(
        error.what,
        where=error.place,
        line=user_lines(error.__cause__),
        why=error.why,
        next=on_the_same_log(error.hint, arguments),
    )


def show_parts(what: str, **parts: str) -> None:
    """Print the parts of an error; parts that are empty, or repeat another one, are left out."""
    if logs_json():
        command_log.error(what, extra={"fields": {label: part for label, part in parts.items() if part}})
        return
    from rich.text import Text

    text = Text("Error: ", style="bold red")
    text.append(what, style="bold")
    said = {""}
    for label, part in parts.items():
        if part not in said:
            said.add(part)
            indented = part.replace("\n", "\n" + " " * 9)
            text.append(f"\n  {label + ':':<6} ", style="dim").append(indented, style="default")
    if is_journal():
        write_line(text.plain, logging.ERROR)
    else:
        messages().print(text)
