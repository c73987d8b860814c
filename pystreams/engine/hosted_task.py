"""A stream task together with its stores. A host fills, starts, commits and closes them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pystreams.broker.port import CommittedOffset
from pystreams.engine.linking import setting_up
from pystreams.engine.stream_task import Position, StreamTask
from pystreams.ids import TopicPartition
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.task_stores import TaskStores


def _nothing() -> Mapping[str, bytes | int]:
    return {}


@dataclass(slots=True)
class HostedTask:
    """Implements ``commit.Committable`` for hosts that have no group: they commit no input offsets.

    ``changelogs`` names the changelog partition of every logged store; ``metadata`` returns entries that each commit
    writes together with the stores.
    """

    stream: StreamTask
    state: TaskStores
    changelogs: Mapping[str, TopicPartition] = field(default_factory=dict)
    metadata: Callable[[], Mapping[str, bytes | int]] = _nothing

    def start(
        self,
        cache: ThreadCache,
        positions: Mapping[TopicPartition, Position],
        operator_state: Mapping[str, int],
        stream_time: int = -1,
    ) -> None:
        """Attach the thread's ``cache`` and start the task, as ``StreamTask.start`` does. The stores must be filled."""
        with setting_up("the task's stores", self.stream.task_id):
            self.state.attach(cache)
        self.stream.start(positions, operator_state, stream_time)

    def flush(self) -> None:
        self.stream.flush(self.state.flush_caches)

    def offsets_to_commit(self) -> Mapping[TopicPartition, CommittedOffset]:
        return {}

    def after_commit(
        self, offsets: Mapping[TopicPartition, CommittedOffset], end_offsets: Mapping[TopicPartition, int]
    ) -> None:
        written = {store: end_offsets[p] for store, p in self.changelogs.items() if p in end_offsets}
        self.state.commit(written, self.metadata())
        self.stream.after_commit()

    def close(self) -> None:
        """Close processors, then stores. Uncommitted work is discarded."""
        try:
            self.stream.close()
        finally:
            self.state.close()
