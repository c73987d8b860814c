"""The errors of pystreams, and how the caller should handle each.

    StreamsError                      root; never raised itself
    ├── TopologyError                 the program is wrong; found while it is built
    ├── ConfigError                   a setting is unknown, malformed or contradicts another
    ├── AppLoadError                  the command line could not find or import the application
    ├── SerializationError            bytes could not be deserialized, or a value could not be serialized
    ├── SchemaRegistryError           the schema registry refused a schema, or the login
    │   └── SchemaRegistryUnavailableError   it cannot be reached; process again from the last commit
    ├── ProcessingError               a user function raised while a record was processed
    ├── DroppedRecordError            a step dropped a record; never raised, only written to dead letters
    ├── ProductionError               the broker refused a record
    │   └── DeliveryError             the record did not arrive; process again from the last commit
    ├── StateError                    a store or the state directory cannot be used
    │   ├── FoldingError              a result that was held back cannot be written; compute again with each update
    │   ├── RestoreError              stores could not be restored for ``task_timeout_ms``
    │   ├── StateLockedError          another thread or process owns the task's directory; try again
    │   └── StateCorruptedError       local state disagrees with its changelog; wipe it and restore
    ├── CloseTimeoutError             a client could not commit and close within ``close_timeout_ms``
    ├── BrokerError                   the broker refused a request
    │   ├── BrokerUnavailableError    it cannot be reached now; try again
    │   ├── TopicError                a topic is missing or has the wrong partition count
    │   ├── SupersededError           another process has taken over the transactional id
    │   ├── OffsetOutOfRangeError     the log no longer has the records at a position
    │   └── RetentionError            the outputs' retention would delete the records about to be written
    └── TaskMigratedError             another member owns the task now; close without a commit and rejoin
        └── TransactionEndedError     others have aborted the thread's transaction; the same, but not for ever

Every message answers: what happened, where, why, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Literal

from pystreams.user_code import CodeLine, caller

Action = Literal["fail", "retry", "redo", "wipe", "rejoin"]


class StreamsError(Exception):
    """Root of all errors that pystreams raises on purpose.

    ``action`` is how the runtime reacts: ``fail`` (stop the thread), ``retry`` (repeat the same call later), ``redo``
    (discard the work since the last commit, and process it again), ``wipe`` (delete local state and restore it),
    ``rejoin`` (close the tasks without a commit and join the group again).
    """

    action: ClassVar[Action] = "fail"

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.why = why
        self.hint = hint
        #: For errors of the program: the line of the program that made the faulty declaration.
        self.line = ""
        #: Threads of the client that has ended with this error are still at work. A process that ends must not wait for
        #: them.
        self.threads_at_work = False
        super().__init__(self._text())

    @property
    def place(self) -> str:
        """``where``, and before it the line of the program."""
        return "; ".join(filter(None, (self.line if self.line not in self.where else "", self.where)))

    def extend(self, *, where: str = "", why: str = "", hint: str = "") -> None:
        """Add information of the caller: the task, step and record, further reasons, and further advice."""
        self.where = "; ".join(filter(None, (where, self.where)))
        self.why = "; ".join(filter(None, (self.why, why)))
        self.hint = "; ".join(filter(None, (self.hint, hint)))
        self.args = (self._text(),)

    def _text(self) -> str:
        lines = [self.what]
        if self.place:
            # There may be several places, one a line.
            lines.append(f"  where: {self.place}".replace("\n", "\n" + " " * 9))
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.hint:
            lines.append(f"  next: {self.hint}")
        return "\n".join(lines)


def summarize(error: BaseException) -> str:
    """The error in one phrase, for use in another error's text: without its place and its advice."""
    if isinstance(error, StreamsError):
        return error.what
    kind = type(error)
    # Some exception classes are just called "error", such as struct.error.
    name = kind.__name__ if kind.__name__ != "error" else f"{kind.__module__}.error"
    return f"{name}: {error}" if str(error) else name


def reason(error: BaseException) -> str:
    """Why it happened, if the error has a reason."""
    return error.why if isinstance(error, StreamsError) else ""


def advice(error: BaseException, otherwise: str) -> str:
    """The advice to the user: the error's own hint if it has one, then ``otherwise``."""
    own = error.hint if isinstance(error, StreamsError) else ""
    return f"{own}; {otherwise}" if own else otherwise


class _DeclarationError(StreamsError):
    """An error in what a program declares. Its message names the line of the declaration."""

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, why=why, hint=hint)
        self.declared_at(caller())

    def declared_at(self, place: CodeLine | None) -> None:
        """Name the line of the declaration instead of the line that ran when the error was found."""
        self.line = "" if place is None else str(place)
        self.args = (self._text(),)


@contextmanager
def declared_at(place: CodeLine | None) -> Iterator[None]:
    """Errors of declarations raised inside name ``place`` as their line, if it is known."""
    try:
        yield
    except _DeclarationError as error:
        if place is not None:
            error.declared_at(place)
        raise


class TopologyError(_DeclarationError):
    """The topology is wrong: a name is used twice, a function has the wrong arity, inputs are not co-partitioned."""


class ConfigError(_DeclarationError):
    """A setting is unknown, has a value of the wrong kind, or contradicts another."""

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, why=why, hint=hint)
        if where:
            # The value came from a file, a variable or an option: no line of the program is at fault.
            self.declared_at(None)


class AppLoadError(StreamsError):
    """The argument on the command line does not name an application."""


class SerializationError(StreamsError):
    """Bytes could not be read as a value, or a value could not be written as bytes."""


class SchemaRegistryError(StreamsError):
    """The schema registry refused a schema or the login, does not have the schema, or has a certificate that is not
    trusted. No record is at fault."""


class SchemaRegistryUnavailableError(SchemaRegistryError):
    """The schema registry cannot be reached, or cannot answer now."""

    action = "redo"


class ProcessingError(StreamsError):
    """A user function raised. ``__cause__`` is the user's exception with its own traceback."""


class DroppedRecordError(StreamsError):
    """The reason why a step dropped a record. Never raised: dead letters carry it (``dead_letter_dropped_records``).

    ``facts`` are further headers of the dead letter, by name: the step, and for records that were too late the numbers
    (ms) ``stream_time``, ``late_ms`` and ``grace_ms``, with which it would have been in time.
    """

    def __init__(self, what: str, *, facts: Mapping[str, str], why: str = "", hint: str = "") -> None:
        super().__init__(what, why=why, hint=hint)
        self.facts = facts


class ProductionError(StreamsError):
    """A record could not be written to its topic."""


class DeliveryError(ProductionError):
    """Records that were sent did not arrive in their topic, or may not have. Nothing may be committed without them."""

    action = "redo"


class StateError(StreamsError):
    """A store or the state directory cannot be used."""


class FoldingError(StateError):
    """A step that keeps its results until they are final cannot write one of them, and does not know which record is
    the cause: the work must be repeated, and each result written at once."""


class StateLockedError(StateError):
    """Another thread or process holds the lock of this task's directory."""

    action = "retry"


class StateCorruptedError(StateError):
    """Local state disagrees with its changelog, or its files are damaged.

    ``expected``: it is older than a hand-over of the user, and topics restore all of it, so it is no reason to warn.
    """

    action = "wipe"
    expected = False


class RestoreError(StateError):
    """Stores could not be restored for ``task_timeout_ms``."""


class CloseTimeoutError(StreamsError):
    """A client could not commit and close within ``close_timeout_ms``; its threads may still be at work."""


class BrokerError(StreamsError):
    """The broker refused a request."""


class BrokerUnavailableError(BrokerError):
    """The broker cannot be reached, or did not answer in time."""

    action = "retry"


class SupersededError(BrokerError):
    """Another process has taken over the transactional id: this writer can write nothing more."""


class TopicError(BrokerError):
    """A topic is missing, or its partition count is not the one that the topology needs."""


class OffsetOutOfRangeError(BrokerError):
    """A position lies before or after the records that the partition still holds."""


class RetentionError(BrokerError):
    """Records would be deleted right after they are written, because their timestamps are older than the retention."""


class TaskMigratedError(StreamsError):
    """Another member of the group owns the task. The work since this member's last commit is discarded."""

    action = "rejoin"


class TransactionEndedError(TaskMigratedError):
    """With exactly-once on Kafka, the open transaction of the thread was aborted: by the brokers, because it took too
    long, or by another producer with the same transactional id."""
