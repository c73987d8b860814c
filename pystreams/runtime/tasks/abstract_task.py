"""The common part of active and standby tasks: stores in a directory, and the partitions that fill them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pystreams.broker.port import CommittedOffset
from pystreams.engine.hosted_task import HostedTask
from pystreams.engine.input.input_decoding import InputForStore
from pystreams.engine.offset_metadata import TaskMetadata, merge_committed
from pystreams.engine.overflow import OverflowReference
from pystreams.engine.stream_task import StreamTask
from pystreams.errors import StateLockedError, StreamsError
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Counter
from pystreams.record import RecordBatch
from pystreams.runtime.tasks.task import TASK_SUCCESSORS, TaskStatus
from pystreams.state.store import LogChange
from pystreams.state.task_stores import TaskStores
from pystreams.stream_time import NO_TIME, TIME_MAX
from pystreams.transitions import check_transition

log = logging.getLogger(__name__)

#: A warning is logged for a task that has waited this long for its directory.
LOCK_WARNING_MS = 5_000.0


@dataclass(slots=True)
class AbstractTask:
    """``changelogs`` has the changelog partition of every logged store. ``source_changelogs`` has, for a store without
    a changelog, the input partition from which it is restored. ``log_changes`` append to the changelogs of the stores,
    ``logged`` counts the records that they have appended. ``records_restored`` counts the restored records."""

    task_id: TaskId
    inputs: frozenset[TopicPartition]
    changelogs: Mapping[str, TopicPartition]
    source_changelogs: Mapping[str, TopicPartition] = field(default_factory=dict, kw_only=True)
    log_changes: Mapping[str, LogChange] = field(default_factory=dict, kw_only=True)
    logged: dict[str, int] = field(default_factory=dict, kw_only=True)
    records_restored: Counter = field(default_factory=Counter, kw_only=True)
    status: TaskStatus = field(default=TaskStatus.CREATED, kw_only=True)
    #: Its local state was just deleted. If the stores still cannot be opened, deleting it again does not help.
    wiped: bool = field(default=False, kw_only=True)
    #: While it waits for its locked directory: the time when it began to wait, and when to log that next (ms).
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
        state = self.open_state
        return {} if state is None else state.stores

    @property
    def open_state(self) -> TaskStores | None:
        """The stores; None: they are not open, or another task has taken them over. Any thread may ask."""
        hosted = self._hosted
        return None if hosted is None else hosted.state

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
        """Have the stores keep, while they are restored, all entries that the work after this commit will need.
        ``ahead``: changelogs may hold records that were not committed, or are undone."""
        metadata = self.metadata_of(committed)
        self.state.hold(metadata.foreign)
        if any(reference.has_emitted for reference in metadata.overflow):
            # A standby does not read overflow records. Until it is known which windows were emitted, nothing expires.
            self.state.limit_time(NO_TIME, NO_TIME)
        elif ahead or metadata.stream_time < metadata.time_seen:
            # The changelogs may hold windows later than stream time: of records whose time stream time may not reach
            # yet, of records that were not committed, or from before a hand-over that set the application back.
            self.state.limit_time(metadata.stream_time, metadata.time_seen)
        else:
            # An earlier run may have set a limit that keeps a store's time below that of its restored records.
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

    def waits_for_lock(self, now_ms: float, error: StateLockedError) -> None:
        """The directory is still locked. A hand-over takes only a moment, so this warns if it takes longer: after 5 s,
        10 s, 20 s, ..."""
        since_ms, warn_at_ms = self.locked_ms = self.locked_ms or (now_ms, now_ms + LOCK_WARNING_MS)
        if now_ms >= warn_at_ms:
            waited_ms = now_ms - since_ms
            self.locked_ms = since_ms, now_ms + waited_ms
            log.warning("task %s has been waiting for %.0f s: %s", self.task_id, waited_ms / 1000, error)

    def close_anyway(self) -> None:
        """``close``, but log its errors: the task is closed all the same."""
        try:
            self.close()
        except StreamsError as error:
            log.warning("task %s is closed, but not cleanly: %s", self.task_id, error)
        except Exception:
            log.exception("task %s: a failure while closing; the task is closed all the same", self.task_id)

    def close(self) -> None:
        """Close processors, then stores; uncommitted changes are discarded."""
        self.hosted.close()
