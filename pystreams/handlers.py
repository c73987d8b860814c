"""The three handlers, which decide about records that cannot be deserialized, processed or produced.

Source: KIP-161, KIP-210, KIP-1033, KIP-1034; org.apache.kafka.streams.errors.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from pystreams.errors import ConfigError, DroppedRecordError
from pystreams.ids import TaskId
from pystreams.record import Headers

log = logging.getLogger(__name__)


#: The names of the headers that describe a failure begin like this. Source: KIP-1034, ExceptionHandlerUtils.
DEAD_LETTER_HEADERS: Final = "__streams.errors."


class Response(Enum):
    """The decision of a handler."""

    FAIL = "fail"  #: Stop. Nothing of this commit interval is committed.
    CONTINUE = "continue"  #: Leave out this record (while processing: this branch of it) and go on.
    DEAD_LETTER = "dead_letter"  #: As CONTINUE, and write the input record to the dead-letter topic.


class RawContent(Enum):
    """Which bytes stand for a failed record."""

    INPUT = "input"  #: The key and value of the input record.
    STORE = "store"  #: Key and value as the failing step had kept them in its store.
    TEXT = (
        "text"  #: The arguments of the failing step as text or JSON, because the input record is not at hand.
    )
    NONE = (
        "none"  #: There are none: a cache or a timer has forwarded the record, and its input is not at hand.
    )


@dataclass(frozen=True, slots=True)
class ErrorContext:
    """A record that failed, and where it failed.

    ``topic``, ``partition`` and ``offset`` are those of the input record; of a record that could not be produced: of
    the input record that it came from; in punctuation: None, -1, -1. ``step`` names the node. ``raw_key`` and
    ``raw_value`` are the input record's bytes. ``key`` and ``value`` are the arguments of the failing step (None if the
    bytes could not be deserialized). ``waited``: the step had kept the record in its store, and the bytes are from
    there; the record's origin may be unknown. ``content`` says what the bytes are.
    """

    topic: str | None
    partition: int
    offset: int
    timestamp: int
    headers: Headers
    step: str
    task_id: TaskId
    raw_key: bytes | None
    raw_value: bytes | None
    key: Any
    value: Any
    exception: Exception
    waited: bool = False
    content: RawContent = RawContent.INPUT

    @property
    def where(self) -> str:
        """Task, step and position, for messages. Never keys or values: they are the user's data."""
        position = f"{self.topic}-{self.partition} offset {self.offset}"
        if self.topic is None:
            position = "a record that waited" if self.waited else "punctuation"
        return f"task {self.task_id}, step {self.step}, {position}"


Handler: TypeAlias = Callable[[ErrorContext], Response]


def log_and_fail(context: ErrorContext) -> Response:
    """Stop. The error that ends the task names the record."""
    log.info("%s: %s", context.where, _summary(context.exception))
    return Response.FAIL


def log_and_continue(context: ErrorContext) -> Response:
    """Leave out the record. The summary reports how many were left out; each position is logged at level INFO
    (``--verbose``)."""
    log.info("left a record out: %s: %s", context.where, _summary(context.exception))
    return Response.CONTINUE


def log_and_dead_letter(context: ErrorContext) -> Response:
    """Move the record to the dead-letter topic. Reported as by ``log_and_continue``."""
    log.info("moved a record to the dead-letter topic: %s: %s", context.where, _summary(context.exception))
    return Response.DEAD_LETTER


_NAMED: dict[str, Handler] = {
    Response.FAIL.value: log_and_fail,
    Response.CONTINUE.value: log_and_continue,
    Response.DEAD_LETTER.value: log_and_dead_letter,
}


def resolve_handler(setting: str | Handler) -> Handler:
    """The handler that a setting names: ``fail``, ``continue``, ``dead_letter``, or a user's function.

    The returned handler raises ``ConfigError`` if the function returns anything but a ``Response``. Raises
    ``ConfigError`` for any other setting.
    """
    if callable(setting):
        return _checked(setting)
    try:
        return _NAMED[setting]
    except (KeyError, TypeError):
        raise ConfigError(
            f"{setting!r} is not a handler",
            hint=f"give one of {', '.join(_NAMED)}, or a function that takes an ErrorContext and returns a Response",
        ) from None


def dead_letter_record(context: ErrorContext) -> tuple[bytes | None, bytes | None, int, Headers]:
    """Key, value, timestamp and headers of the dead-letter record: the input record unchanged, with headers
    ``__streams.errors.*`` that describe the failure; those of a dropped record have the facts of the drop, too. Beyond
    Java's headers there is the step, and ``content`` if the bytes are not those of the input record. Source: KIP-1034,
    ExceptionHandlerUtils."""
    error = context.exception
    texts = {
        "exception": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": str(error),
        "stacktrace": "".join(traceback.format_exception(error)),
        "topic": context.topic,
        "partition": str(context.partition),
        "offset": str(context.offset),
        "step": context.step,
        **(error.facts if isinstance(error, DroppedRecordError) else {}),
    }
    if context.content is not RawContent.INPUT:
        texts["content"] = context.content.value
    headers = tuple(
        (f"{DEAD_LETTER_HEADERS}{name}", None if text is None else text.encode("utf-8", "replace"))
        for name, text in texts.items()
    )
    return context.raw_key, context.raw_value, context.timestamp, context.headers + headers


def _checked(handler: Handler) -> Handler:
    def ask(context: ErrorContext) -> Response:
        response: object = handler(context)
        if not isinstance(response, Response):
            name = getattr(handler, "__qualname__", repr(handler))
            raise ConfigError(
                f"the handler {name} returned {response!r}",
                where=context.where,
                hint="return Response.FAIL, Response.CONTINUE or Response.DEAD_LETTER",
            ) from context.exception
        return response

    return ask


def _summary(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
