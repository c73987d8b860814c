"""The log output of a command on standard error: lines for people, or one JSON object per line for programs."""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, cast

from pystreams.cli.terminal.console import EnduringStream, messages
from pystreams.cli.terminal.journal import for_journal, is_journal
from pystreams.clock import SystemClock

#: The logger of the command's own notes, progress and errors: its lines for people have no date and level.
COMMAND_LOG: Final = "pystreams.command"

command_log: Final = logging.getLogger(COMMAND_LOG)


class LogFormat(StrEnum):
    """``--log-format``."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How a command logs. ``worker`` is the number of the worker that logs, None in a process without workers;
    ``journal``: whether its supervisor passes its lines on to the journal."""

    verbose: bool = False
    quiet: bool = False
    format: LogFormat = LogFormat.TEXT
    worker: int | None = None
    journal: bool = False

    @property
    def as_json(self) -> bool:
        return self.format is LogFormat.JSON


class _Handler(logging.Handler):
    """Writes to the present standard error; while a bar is shown, above the bar."""

    def __init__(self, options: LogOptions) -> None:
        super().__init__()
        self.options = options

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self.options.as_json:
                write_line(json_line(record, self.options.worker), record.levelno)
            elif record.name == COMMAND_LOG and _reaches_journal():
                write_line(record.getMessage(), record.levelno)
            elif record.name == COMMAND_LOG:
                style = "dim" if record.levelno < logging.WARNING else "yellow"
                messages().print(record.getMessage(), markup=False, style=style)
            else:
                write_line(self.format(record), record.levelno)
        except Exception:  # noqa: BLE001 - as all handlers of logging
            self.handleError(record)

    def format(self, record: logging.LogRecord) -> str:
        text = f"{_iso(record.created)} {record.levelname} {record.name}: {record.getMessage()}"
        return text if record.exc_info is None else f"{text}\n{_traceback(record)}"


#: The handler that ``log_to_stderr`` has installed, and the log level before.
_in_force: list[tuple[_Handler, int]] = []


def log_to_stderr(options: LogOptions) -> None:
    """Print the library's log: warnings, and with ``verbose`` also the work of threads and tasks. With ``quiet`` the
    command itself prints only warnings and errors."""
    take_down_logs()
    root = logging.getLogger()
    handler = _Handler(options)
    _in_force.append((handler, root.level))
    root.addHandler(handler)
    root.setLevel(logging.INFO if options.verbose else logging.WARNING)
    command_log.setLevel(logging.WARNING if options.quiet else logging.INFO)


def take_down_logs() -> None:
    """Undo ``log_to_stderr``."""
    while _in_force:
        handler, level = _in_force.pop()
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(level)


def logs_json() -> bool:
    """Whether standard error has the JSON format."""
    return bool(_in_force) and _in_force[-1][0].options.as_json


def _reaches_journal() -> bool:
    """Whether standard error goes to the journal, from a worker through its supervisor."""
    return is_journal() or (bool(_in_force) and _in_force[-1][0].options.journal)


def json_line(record: logging.LogRecord, worker: int | None) -> str:
    """A record as JSON: time, level, logger, thread and message; worker, task and exception where there are any; and
    the figures that a command adds (``extra={"fields": {...}}``)."""
    content: dict[str, Any] = {
        "time": _iso(record.created),
        "level": record.levelname,
        "logger": record.name,
        "thread": record.threadName,
        "message": _unaligned(record.getMessage()),
    }
    if worker is not None:
        content["worker"] = worker
    task = getattr(record, "task", None)
    if task is not None:
        content["task"] = str(task)
    if record.exc_info is not None:
        content["exception"] = _traceback(record)
    content.update(getattr(record, "fields", {}))
    return json.dumps(content, ensure_ascii=False)


def json_of_worker(line: str, worker: int) -> str:
    """A line of a worker's output as a log line: unchanged if it is one already, else as the message of a new one."""
    if line.startswith('{"time": '):
        return line
    content = {
        "time": _iso(SystemClock().now_ms() / 1000),
        "level": "INFO",
        "worker": worker,
        "message": line,
    }
    return json.dumps(content, ensure_ascii=False)


def _iso(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp).astimezone().isoformat(timespec="milliseconds")


def _unaligned(text: str) -> str:
    """The text without the blanks that align columns."""
    return re.sub(r"(?<=\S) {2,}", " ", text)


def _traceback(record: logging.LogRecord) -> str:
    found = cast(Any, record.exc_info)
    return "".join(traceback.format_exception(*found)).rstrip()


def write_line(text: str, level: int) -> None:
    """Write to standard error. For the journal, each line begins with the priority of ``level``."""
    stream = EnduringStream(sys.stderr)
    stream.write((for_journal(text, level) if _reaches_journal() else text) + "\n")
    stream.flush()
