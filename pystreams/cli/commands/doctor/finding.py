"""A finding of the doctor, and how it is printed."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum

from pystreams.errors import StreamsError


class Level(Enum):
    """How good a finding is, with its sign and its colour."""

    GOOD = ("ok", "green")
    REMARK = ("!", "yellow")
    BAD = ("x", "red")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line, and perhaps what to do."""

    level: Level
    subject: str
    text: str
    hint: str = ""


def good(subject: str, text: str) -> Finding:
    return Finding(Level.GOOD, subject, text)


def remark(subject: str, text: str, hint: str = "") -> Finding:
    """Something that works, and may surprise."""
    return Finding(Level.REMARK, subject, text, hint)


def bad(subject: str, error: StreamsError) -> Finding:
    """A problem with which the application would not start, or would fail later."""
    parts = [error.what, *(part for part in (error.where, error.why) if part)]
    return Finding(Level.BAD, subject, "; ".join(parts), error.hint)


class Warnings(logging.Handler):
    """Collects the warnings that the checks of a start would log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def warnings_of(name: str) -> Iterator[Warnings]:
    """The warnings of a logger and those below it, which are not written to the log meanwhile."""
    logger, handler = logging.getLogger(name), Warnings()
    propagates = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
