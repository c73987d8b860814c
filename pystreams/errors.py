"""The errors of pystreams, and what each asks of its catcher.

    StreamsError                      root; never raised itself
    ├── TopologyError                 the program is wrong; found while it is built
    ├── ConfigError                   a setting is unknown, malformed or contradicts another
    ├── AppLoadError                  the command line could not find or import the application
    ├── SerializationError            bytes could not be read as a value, or a value not be written as bytes
    ├── SchemaRegistryError           the schema registry refused a schema, or the login
    │   └── SchemaRegistryUnavailableError   it cannot be reached; do what was done since the last commit again
    ├── ProcessingError               a user function raised while a record was processed
    ├── DroppedRecordError            a step dropped a record; never raised, told in dead letters
    ├── ProductionError               the broker refused a record
    │   └── DeliveryError             it did not arrive; do what was done since the last commit again
    ├── StateError                    a store or the state directory cannot be used
    │   ├── StateLockedError          another thread or process owns the task's directory; try again
    │   └── StateCorruptedError       local state disagrees with its changelog; wipe it and restore
    ├── BrokerError                   the broker said no
    │   ├── BrokerUnavailableError    it cannot be reached now; try again
    │   ├── TopicError                a topic is missing or has the wrong shape
    │   ├── OffsetOutOfRangeError     a position is no longer in the log
    │   └── RetentionError            the outputs' retention would delete the records about to be written
    └── TaskMigratedError             another member owns the task now; close without a commit and rejoin

Every message answers: what happened, where, why, and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Literal

from pystreams.user_code import Place, caller

Action = Literal["fail", "retry", "redo", "wipe", "rejoin"]


class StreamsError(Exception):
    """Root of all errors that pystreams raises on purpose.

    ``action`` tells the runtime what the error asks for: ``fail`` (stop the thread), ``retry`` (try the same again
    later), ``redo`` (forget what was done since the last commit, and do it again), ``wipe`` (delete local state and
    restore it), ``rejoin`` (close the tasks without a commit and join the group again).
    """

    action: ClassVar[Action] = "fail"

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        self.what = what
        self.where = where
        self.why = why
        self.hint = hint
        #: The line of the program that declares what is wrong, for errors of the program.
        self.line = ""
        super().__init__(self._text())

    @property
    def place(self) -> str:
        """``where``, and before it the line of the program."""
        return "; ".join(filter(None, (self.line if self.line not in self.where else "", self.where)))

    def extend(self, *, where: str, hint: str = "") -> None:
        """Tell more where more is known: which task, step and record it was, and what else can be done."""
        self.where = f"{where}; {self.where}" if self.where else where
        if hint:
            self.hint = f"{self.hint}; {hint}" if self.hint else hint
        self.args = (self._text(),)

    def _text(self) -> str:
        lines = [self.what]
        if self.place:
            lines.append(f"  where: {self.place}")
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.hint:
            lines.append(f"  next: {self.hint}")
        return "\n".join(lines)


def summarize(error: BaseException) -> str:
    """What an error says in one phrase, to stand in another error's text: not where it happened, nor what to do."""
    if isinstance(error, StreamsError):
        return error.what
    kind = type(error)
    # A few are called just "error", struct.error above all.
    name = kind.__name__ if kind.__name__ != "error" else f"{kind.__module__}.error"
    return f"{name}: {error}" if str(error) else name


def reason(error: BaseException) -> str:
    """Why it happened, if the error is one that says so."""
    return error.why if isinstance(error, StreamsError) else ""


def advice(error: BaseException, otherwise: str) -> str:
    """What to do: what the error itself says, if it does, before what can be done about any error here."""
    own = error.hint if isinstance(error, StreamsError) else ""
    return f"{own}; {otherwise}" if own else otherwise


class _DeclarationError(StreamsError):
    """What a program declares is wrong: the line that declared it is told."""

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, why=why, hint=hint)
        self.declared_at(caller())

    def declared_at(self, place: Place | None) -> None:
        """Tell that line, not the one that was at work when the error was found."""
        self.line = "" if place is None else str(place)
        self.args = (self._text(),)


@contextmanager
def declared_at(place: Place | None) -> Iterator[None]:
    """What is found wrong inside was declared at ``place``, if that is known."""
    try:
        yield
    except _DeclarationError as error:
        if place is not None:
            error.declared_at(place)
        raise


class TopologyError(_DeclarationError):
    """The topology is wrong: a name twice, a function of the wrong arity, inputs that are not co-partitioned."""


class ConfigError(_DeclarationError):
    """A setting is unknown, has a value of the wrong kind, or contradicts another."""

    def __init__(self, what: str, *, where: str = "", why: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, why=why, hint=hint)
        if where:
            # It was given in a file, a variable or an option: the program is not to blame.
            self.declared_at(None)


class AppLoadError(StreamsError):
    """What was given on the command line is not an application."""


class SerializationError(StreamsError):
    """Bytes could not be read as a value, or a value could not be written as bytes."""


class SchemaRegistryError(StreamsError):
    """The schema registry refused a schema, does not have it, or refused the login. No record is to blame."""


class SchemaRegistryUnavailableError(SchemaRegistryError):
    """The schema registry cannot be reached, or cannot answer now."""

    action = "redo"


class ProcessingError(StreamsError):
    """A user function raised. ``__cause__`` is the user's exception with its own traceback."""


class DroppedRecordError(StreamsError):
    """Why a step dropped a record. Never raised: dead letters carry it (``dead_letter_dropped_records``)."""


class ProductionError(StreamsError):
    """A record could not be written to its topic."""


class DeliveryError(ProductionError):
    """Records that were sent are not in their topic, or nobody knows. Without them nothing may be committed."""

    action = "redo"


class StateError(StreamsError):
    """A store or the state directory cannot be used."""


class StateLockedError(StateError):
    """Another thread or process holds the lock of this task's directory."""

    action = "retry"


class StateCorruptedError(StateError):
    """Local state disagrees with its changelog, or its files are damaged."""

    action = "wipe"


class BrokerError(StreamsError):
    """The broker refused a request."""


class BrokerUnavailableError(BrokerError):
    """The broker cannot be reached, or did not answer in time."""

    action = "retry"


class TopicError(BrokerError):
    """A topic is missing, or has another partition count than the topology needs."""


class OffsetOutOfRangeError(BrokerError):
    """A position lies outside of what the partition still holds."""


class RetentionError(BrokerError):
    """Records would be deleted right after they are written, because their timestamps are older than the retention."""


class TaskMigratedError(StreamsError):
    """Another member of the group owns the task; what this one did since its last commit does not count."""

    action = "rejoin"
