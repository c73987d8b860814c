"""A task as its thread holds it: the stream task, its state, its changelogs, and what was committed for it last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pystreams.broker.port import CommittedOffset
from pystreams.engine.input.input_decoding import InputForStore
from pystreams.engine.offset_metadata import NO_TIME, encode_committed, merge_committed
from pystreams.engine.stream_task import Position, StreamTask
from pystreams.engine.task_lifecycle import TaskStatus
from pystreams.ids import TaskId, TopicPartition
from pystreams.record import RecordBatch
from pystreams.state.store import LogChange
from pystreams.state.task_state import TaskState


@dataclass(slots=True)
class ActiveTask:
    """``changelogs`` names the changelog partition of every logged store, ``source_changelogs`` the input that a store
    is restored from which has none; ``committed`` the last commit of each input, and ``fresh`` where reading begins of
    those that have none and are read from their beginning.

    ``log_changes`` append to the changelogs of the stores, ``logged`` counts what they have appended past ``log_ends``:
    so far it is known that the changelogs hold nothing else (see ``changelog_guard``).
    """

    stream: StreamTask
    state: TaskState
    changelogs: Mapping[str, TopicPartition]
    source_changelogs: Mapping[str, TopicPartition] = field(default_factory=dict)
    foreign_metadata: Mapping[str, int] = field(default_factory=dict)
    committed: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    fresh: dict[TopicPartition, int] = field(default_factory=dict)
    log_changes: Mapping[str, LogChange] = field(default_factory=dict)
    logged: dict[str, int] = field(default_factory=dict)
    log_ends: dict[str, int] = field(default_factory=dict)
    _inputs_for_stores: dict[str, InputForStore] = field(default_factory=dict)

    @property
    def task_id(self) -> TaskId:
        return self.stream.task_id

    @property
    def status(self) -> TaskStatus:
        return self.stream.status

    @property
    def inputs(self) -> frozenset[TopicPartition]:
        return self.stream.partitions

    def restore_offsets(self, end_offsets: Mapping[TopicPartition, int]) -> dict[str, int]:
        """By store, from where to restore it after a commit that ``end_offsets`` of the changelogs came from."""
        written = {store: end_offsets[p] for store, p in self.changelogs.items() if p in end_offsets}
        read = {
            store: self.committed[p].offset
            for store, p in self.source_changelogs.items()
            if p in self.committed
        }
        return written | read

    def restore(self, store: str, batch: RecordBatch) -> None:
        """Apply records of what a store is restored from. Raises ``StateCorruptedError``, and ``ProcessingError`` where
        a serde of the user's cannot be set up."""
        if store in self.source_changelogs:
            if store not in self._inputs_for_stores:
                self._inputs_for_stores[store] = self.stream.input_for_store(batch.topic)
            batch = self._inputs_for_stores[store].processed(batch)
        self.state.restore(store, batch)

    def needs_commit(self, position_of: Callable[[TopicPartition], int]) -> bool:
        """There is work to commit, or a place where reading began and that the next start would not find again:
        ``latest`` is somewhere else then, and what came in between would be left out. Or the consumer has gone past the
        marker of a transaction: a log that ends with it would be said to have more, and once retention has taken it,
        something would seem to be lost."""
        return self.stream.commit_needed or any(
            self._is_past_commit(partition, position_of(partition)) for partition in self.inputs
        )

    def _is_past_commit(self, partition: TopicPartition, position: int) -> bool:
        committed = self.committed.get(partition)
        known = self.fresh.get(partition) if committed is None else committed.offset
        return known is None or (position > known and not self.stream.buffered(partition))

    def start(
        self, positions: Mapping[TopicPartition, int], beginnings: Mapping[TopicPartition, int]
    ) -> None:
        """Restored: go on at ``positions``, with the times and operators' memory of the last commit. ``beginnings`` are
        the first offsets that the inputs hold."""
        metadata = merge_committed(self.committed)
        self.foreign_metadata = metadata.foreign
        self.fresh = {
            partition: at
            for partition, at in positions.items()
            if partition not in self.committed and at == beginnings[partition]
        }
        self.stream.start(
            {
                partition: Position(offset, metadata.partition_times.get(partition, NO_TIME))
                for partition, offset in positions.items()
            },
            {**metadata.foreign, **metadata.own},
        )

    def offsets_to_commit(
        self, position_of: Callable[[TopicPartition], int]
    ) -> dict[TopicPartition, CommittedOffset]:
        """The offsets whose commit would tell something new: none for a partition of which nothing was ever read.

        ``position_of`` is the consumer's position: it counts where everything before it has been processed, because the
        log may hold no records up to it.
        """
        positions: dict[TopicPartition, int] = {}
        times: dict[TopicPartition, int] = {}
        for partition, (offset, time) in self.stream.positions().items():
            if not self.stream.buffered(partition):
                offset = max(offset, position_of(partition))
            if self.fresh.get(partition) != offset:
                positions[partition], times[partition] = offset, time
        encoded = encode_committed(positions, times, self.stream.operator_state(), self.foreign_metadata)
        return {p: offset for p, offset in encoded.items() if self.committed.get(p) != offset}

    def close(self) -> None:
        """Close processors, then stores; what was not committed is forgotten."""
        try:
            self.stream.close()
        finally:
            self.state.close()
