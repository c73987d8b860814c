"""The interface of a task that restoring needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from pystreams.broker.port import CommittedOffset
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import RecordBatch


class ToRestore(NamedTuple):
    """A store that is to be filled from a partition: a changelog, or an input that stands in for one.

    ``offset`` is the offset to begin at; None: begin at the beginning, because the store is empty. ``limit`` is the
    offset at which to stop in an input; None: read to the end, as in a changelog. ``warns_of_gaps``: warn if retention
    has deleted all records, because they are missing in the store then.
    """

    store: str
    partition: TopicPartition
    offset: int | None
    limit: int | None
    warns_of_gaps: bool


class Restorable(Protocol):
    """A task whose stores are to be filled."""

    @property
    def task_id(self) -> TaskId: ...

    def to_restore(self) -> Sequence[ToRestore]:
        """Its stores, and what they are filled from."""
        ...

    def restore(self, store: str, batch: RecordBatch) -> None:
        """Apply records of what a store is restored from. Raises ``StateCorruptedError``, and ``ProcessingError`` where
        a serde of the user's cannot be set up."""
        ...

    def fill(self, stores: Collection[str]) -> None:
        """Prepare these of its stores for the restore of many records. Raises ``StateCorruptedError``."""
        ...

    def settled(self) -> bool:
        """Whether ``restored`` may be called. It takes only a moment then. Called repeatedly until it returns True."""
        ...

    def restored(self, ends: Mapping[str, int]) -> None:
        """All its stores are filled; ``ends`` has for each store the offset up to which it is."""
        ...


class Followable(Protocol):
    """A task whose stores are to be kept up to date: a standby."""

    @property
    def task_id(self) -> TaskId: ...

    def to_restore(self) -> Sequence[ToRestore]:
        """Its stores, and what they are filled from."""
        ...

    def restore(self, store: str, batch: RecordBatch) -> None:
        """See ``Restorable.restore``."""
        ...

    @property
    def needs_commits(self) -> bool:
        """Whether to call ``group_committed`` periodically."""
        ...

    def group_committed(self, committed: Mapping[TopicPartition, CommittedOffset]) -> Mapping[str, int]:
        """The group has committed these offsets. Returns for each store that is filled from an input the offset up to
        which to read this input."""
        ...

    def checkpoint(self, *, complete: bool) -> None:
        """Called periodically. ``complete``: no records are left to read at the moment."""
        ...
