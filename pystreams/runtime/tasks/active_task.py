"""A task that processes records, as its thread holds it: its state, its stores and changelogs, and its last commit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from pystreams.broker.port import CommittedOffset
from pystreams.engine.offset_metadata import HEAD, encode_committed, entry
from pystreams.engine.overflow_writer import OverflowWriter
from pystreams.engine.stream_task import Position
from pystreams.ids import TopicPartition
from pystreams.runtime.restoring.restorable import ToRestore
from pystreams.runtime.tasks.abstract_task import AbstractTask
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.stream_time import NO_TIME


@dataclass(slots=True)
class ActiveTask(AbstractTask):
    """``position_of`` returns the consumer's position in an input. ``last_commit`` is that of each input.
    ``fresh`` has the first offset of each input that has no commit and is read from its beginning. ``logged`` counts
    the records that the task has appended to its changelogs after ``log_ends``, the offsets up to which the changelogs
    are known to hold only its own records (see ``changelog_guard``). ``overflow`` writes metadata that does not fit
    beside the offsets. ``internal_inputs`` are its inputs from internal topics.

    Implements ``task.Task``, ``restorable.Restorable`` and ``commit.Committable``.
    """

    position_of: Callable[[TopicPartition], int]
    foreign_metadata: Mapping[str, int] = field(default_factory=dict)
    last_commit: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    fresh: dict[TopicPartition, int] = field(default_factory=dict)
    log_ends: dict[str, int] = field(default_factory=dict)
    overflow: OverflowWriter | None = None
    internal_inputs: Collection[TopicPartition] = ()
    #: Whether the group has confirmed ``last_commit`` before the task's first commit.
    start_confirmed: bool = False
    #: The timestamp (ms) of the next record, which the next commit shows to other members; None: it shows none.
    head_reported_ms: int | None = None

    def interrupt(self) -> None:
        """Process nothing more after the record at work. May be called from another thread."""
        if self._hosted is not None:
            self._hosted.stream.interrupt()

    # Restoring

    def to_restore(self) -> list[ToRestore]:
        """The stores, and the partitions to fill them from."""
        read = self._read_by_stores(self.committed_offsets())
        return [
            *(self._to_restore(store, p, read.get(store, 0)) for store, p in self.source_changelogs.items()),
            *(self._to_restore(store, p, None) for store, p in self.changelogs.items()),
        ]

    def _to_restore(self, store: str, partition: TopicPartition, limit: int | None) -> ToRestore:
        state = self.state
        warns_of_gaps = bool(self.last_commit) and state.expires(store)
        return ToRestore(store, partition, state.changelog_offset(store), limit, warns_of_gaps)

    def fill(self, stores: Collection[str]) -> None:
        """Prepare these stores for the restore of many records. Raises ``StateCorruptedError``."""
        self.state.fill(stores)

    def settled(self) -> bool:
        """Whether ``restored`` may be called. It takes only a moment then."""
        return self.state.settled()

    def restored(self, ends: Mapping[str, int]) -> None:
        """The stores are complete up to the offsets ``ends``, by store."""
        self.state.complete()
        self.state.restore_checkpoint()
        self.log_ends.update(ends)

    # Work

    @property
    def internal_buffered(self) -> int:
        """The number of buffered records from internal topics."""
        return sum(map(self.stream.buffered, self.internal_inputs))

    @property
    def needs_commit(self) -> bool:
        """Whether there is something to commit: work, or one of two kinds of offsets. The first is an offset at which
        reading began and that the next start would not find again: ``latest`` is another offset by then, so the records
        in between would be skipped. The second is a position behind the marker of a transaction: without this commit, a
        partition that ends with the marker would have a lag, and when retention has deleted the marker, records would
        seem to be lost."""
        return self.stream.commit_needed or any(
            self._is_past_commit(partition, self.position_of(partition)) for partition in self.inputs
        )

    def _is_past_commit(self, partition: TopicPartition, position: int) -> bool:
        committed = self.last_commit.get(partition)
        known = self.fresh.get(partition) if committed is None else committed.offset
        return known is None or (position > known and not self.stream.buffered(partition))

    def start(
        self,
        cache: ThreadCache,
        positions: Mapping[TopicPartition, int],
        beginnings: Mapping[TopicPartition, int],
    ) -> None:
        """The stores are restored: start at ``positions``, with the times and the operators' memory of the last commit.
        ``cache`` is the thread's, ``beginnings`` are the first offsets that the inputs hold."""
        metadata = self.metadata_of(self.last_commit)
        self.foreign_metadata = metadata.foreign
        self.fresh = {
            partition: at
            for partition, at in positions.items()
            if partition not in self.last_commit and at == beginnings[partition]
        }
        self.hosted.start(
            cache,
            {
                partition: Position(offset, metadata.partition_times.get(partition, NO_TIME))
                for partition, offset in positions.items()
            },
            {**metadata.foreign, **metadata.own},
        )
        self.state.committed_stores.open(self.committed_offsets())
        if not positions.keys() <= self.last_commit.keys() | self.fresh.keys():
            # Without a commit, the next start would begin at other offsets and skip the records in between.
            self.stream.timing.commit_requested = True

    def committed_offsets(self) -> dict[TopicPartition, int]:
        """For each input the offset up to which its records are committed."""
        return _offsets_of(self.last_commit)

    def processed_offsets(self) -> dict[TopicPartition, int]:
        """For each input the offset up to which its records are processed, whether committed or not."""
        return {
            **self.committed_offsets(),
            **{partition: position.offset for partition, position in self.stream.positions().items()},
        }

    # Commit

    def flush(self) -> None:
        """Forward and log the dirty entries in the caches of the stores."""
        self.hosted.flush()

    def offsets_to_commit(self) -> dict[TopicPartition, CommittedOffset]:
        """The offsets that differ from the last commit; none for a partition of which nothing was ever read.

        If all records before the consumer's position have been processed, the position itself is committed, because
        there may be offsets without records before it. If only punctuators have worked, the offset of one input is
        committed again unchanged: the group accepts offsets only from the member that has the task, which protects the
        rest of the commit, too.
        """
        positions: dict[TopicPartition, int] = {}
        times: dict[TopicPartition, int] = {}
        for partition, (offset, time) in self.stream.positions().items():
            known = self.last_commit.get(partition)
            if not self.stream.buffered(partition):
                offset = max(offset, self.position_of(partition))
            elif known is not None:
                # The last commit was the consumer's position, and the records after it are not processed yet.
                offset = max(offset, known.offset)
            if self.fresh.get(partition) != offset:
                positions[partition], times[partition] = offset, time
        own = self.stream.operator_state()
        if self.head_reported_ms is not None:
            own[entry(*HEAD)] = self.head_reported_ms
        encoded = encode_committed(positions, times, own, self.foreign_metadata, self.overflow)
        changed = {p: offset for p, offset in encoded.items() if self.last_commit.get(p) != offset}
        return changed or (self._unchanged(own) if self.stream.commit_needed else {})

    def _unchanged(self, own: Mapping[str, int]) -> dict[TopicPartition, CommittedOffset]:
        """The unchanged offset of one input, preferably of one that was committed before."""
        for partition, (offset, time) in sorted(self.stream.positions().items()):
            if not self.last_commit:
                at = {partition: offset}
                return encode_committed(at, {partition: time}, own, self.foreign_metadata, self.overflow)
            if partition in self.last_commit:
                return {partition: self.last_commit[partition]}
        return {}

    def after_commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], end_offsets: Mapping[TopicPartition, int]
    ) -> None:
        """The log has committed ``offsets``: commit the stores, which match their changelogs up to ``end_offsets``."""
        committed = {**self.last_commit, **offsets}
        input_offsets = _offsets_of(committed)
        if self.overflow is not None:
            self.overflow.after_commit(end_offsets)
        # The offset from which to restore each store.
        written = {store: end_offsets[p] for store, p in self.changelogs.items() if p in end_offsets}
        self.state.commit(written | self._read_by_stores(input_offsets), input_offsets=input_offsets)
        # Only after the stores are committed: if that fails, their changelogs are right nevertheless, and
        # ``TaskManager._take_back`` recognizes such a task by offsets that differ from the group's.
        self.last_commit = committed
        self.stream.after_commit()

    def _read_by_stores(self, input_offsets: Mapping[TopicPartition, int]) -> dict[str, int]:
        """For each store without a changelog, the offset of its input up to which it holds the records: the committed
        one."""
        return {store: input_offsets[p] for store, p in self.source_changelogs.items() if p in input_offsets}


def _offsets_of(committed: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, int]:
    return {partition: at.offset for partition, at in committed.items()}
