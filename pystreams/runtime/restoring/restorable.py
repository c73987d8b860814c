"""The interface of a task that restoring needs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from pystreams.broker.port import CommittedOffset
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import RecordBatch


class ToRestore(NamedTuple):
    """A store that is to be filled from a partition: a changelog, or an input that stands in for one.

    ``offset`` is where to begin; None: at the beginning, because the store is empty. ``limit`` is the offset at which
    to stop in an input; None: read to the end, as in a changelog. ``warns_of_gaps``: warn if retention has deleted all
    records, because the store then lacks them.
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
        """Much is about to be restored to these of its stores. Raises ``StateCorruptedError``."""
        ...

    def settled(self) -> bool:
        """Whether ``restored`` may be called, which then takes a moment only. Called until it may."""
        ...

    def restored(self, ends: Mapping[str, int]) -> None:
        """All its stores are filled, up to ``ends`` by store."""
        ...


class Followable(Protocol):
    """A task whose stores are to be kept filled: a standby."""

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
        """Whether to call ``group_committed`` now and then."""
        ...

    def group_committed(self, committed: Mapping[TopicPartition, CommittedOffset]) -> Mapping[str, int]:
        """The group has committed these offsets. Returns up to where inputs may be read, by store."""
        ...

    def checkpoint(self, *, complete: bool) -> None:
        """Called now and then. ``complete``: nothing is left to read at the moment."""
        ...
