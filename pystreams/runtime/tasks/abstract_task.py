"""The common part of active and standby tasks: stores in a directory, and the partitions that fill them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pystreams.broker.port import CommittedOffset
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.input.input_decoding import InputForStore
from pystreams.engine.offset_metadata import TaskMetadata, merge_committed
from pystreams.engine.overflow import OverflowReference
from pystreams.engine.stream_task import StreamTask
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Counter
from pystreams.record import RecordBatch
from pystreams.runtime.tasks.task import TASK_SUCCESSORS, TaskStatus
from pystreams.state.store import LogChange
from pystreams.state.task_stores import TaskStores
from pystreams.stream_time import NO_TIME, TIME_MAX
from pystreams.transitions import check_transition


@dataclass(slots=True)
class AbstractTask:
    """``changelogs`` names the changelog partition of every logged store, ``source_changelogs`` the input that a store
    is restored from which has none. ``log_changes`` append to the changelogs of the stores, ``logged`` counts what they
    have appended. ``records_restored`` counts what its stores were filled with."""

    task_id: TaskId
    inputs: frozenset[TopicPartition]
    changelogs: Mapping[str, TopicPartition]
    source_changelogs: Mapping[str, TopicPartition] = field(default_factory=dict, kw_only=True)
    log_changes: Mapping[str, LogChange] = field(default_factory=dict, kw_only=True)
    logged: dict[str, int] = field(default_factory=dict, kw_only=True)
    records_restored: Counter = field(default_factory=Counter, kw_only=True)
    status: TaskStatus = field(default=TaskStatus.CREATED, kw_only=True)
    #: Its local state was deleted just before: if the stores still cannot be opened, deleting it again does not help.
    wiped: bool = field(default=False, kw_only=True)
    #: While its directory is locked: since when it has waited, and when to log that again (ms).
    locked_ms: tuple[float, float] | None = field(default=None, kw_only=True)
    #: The part of its last commit that is in records, because it does not fit beside the offsets.
    overflow_numbers: Mapping[OverflowReference, Mapping[str, int]] = field(
        default_factory=dict, kw_only=True
    )
    _hosted: HostedTask | None = field(default=None, init=False)
    _inputs_for_stores: dict[str, InputForStore] = field(default_factory=dict, init=False)

    @property
    def hosted(self) -> HostedTask:
        """The stream task with its stores; only after ``opened``."""
        assert self._hosted is not None, f"task {self.task_id} is not open"
        return self._hosted

    @property
    def stream(self) -> StreamTask:
        return self.hosted.stream

    @property
    def state(self) -> TaskStores:
        return self.hosted.state

    @property
    def stores(self) -> Mapping[str, Any]:
        return {} if self._hosted is None else self._hosted.state.stores

    @property
    def is_open(self) -> bool:
        """Whether the directory is locked and the stores are open."""
        return self._hosted is not None

    def become(self, status: TaskStatus) -> None:
        self.status = check_transition(f"task {self.task_id}", TASK_SUCCESSORS, self.status, status)

    def opened(self, hosted: HostedTask) -> None:
        """The task has locked its directory and opened its stores."""
        self._hosted = hosted

    def reached(self) -> int:
        """The sum of the offsets up to which the stores hold their changelogs."""
        if self._hosted is None:
            return 0
        stores = [*self.changelogs, *self.source_changelogs]
        return sum(self.state.changelog_offset(store) or 0 for store in stores)

    def keep_time(self, committed: Mapping[TopicPartition, CommittedOffset], *, ahead: bool) -> None:
        """Keep, while the stores are restored, all that the work after a commit will need. ``ahead``: changelogs may
        hold what was not committed, or is undone."""
        metadata = self.metadata_of(committed)
        self.state.hold(metadata.foreign)
        if any(reference.has_emitted for reference in metadata.overflow):
            # A standby does not read records of commits. Until it is known what was emitted, nothing expires.
            self.state.limit_time(NO_TIME, NO_TIME)
        elif ahead or metadata.stream_time < metadata.time_seen:
            # The changelogs may hold later windows: of what was seen before stream time may reach it, of what was not
            # committed, or of before a hand-over that set the application back.
            self.state.limit_time(metadata.stream_time, metadata.time_seen)
        else:
            # Also if there was no limit: the one of an earlier run may have kept a store below what it has restored.
            self.state.limit_time(TIME_MAX, TIME_MAX)

    def metadata_of(self, committed: Mapping[TopicPartition, CommittedOffset]) -> TaskMetadata:
        """The metadata of a commit, with the numbers of its known overflow records."""
        return merge_committed(committed).with_overflow(self.overflow_numbers)

    def restore(self, store: str, batch: RecordBatch) -> None:
        """Apply records of what a store is restored from. Raises ``StateCorruptedError``, and ``ProcessingError`` where
        a serde of the user's cannot be set up."""
        if store in self.source_changelogs:
            if store not in self._inputs_for_stores:
                self._inputs_for_stores[store] = self.stream.input_for_store(batch.topic)
            batch = self._inputs_for_stores[store].processed(batch)
        self.state.restore(store, batch)
        self.records_restored.add(len(batch))

    def take_over(self, other: AbstractTask) -> None:
        """Go on with the open stores of another task with this id, which must not be used any more."""
        assert other.task_id == self.task_id
        self.log_changes, self.logged = other.log_changes, other.logged
        for store in self.logged:
            self.logged[store] = 0
        self._hosted, other._hosted = other._hosted, None
        self._inputs_for_stores = other._inputs_for_stores

    def close(self) -> None:
        """Close processors, then stores; what was not committed is forgotten."""
        self.hosted.close()
