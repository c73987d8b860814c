"""The objects that all threads of a client share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pystreams.broker.port import Admin, Broker, TransactionContent
from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.engine.failures.left_out import LeftOut
from pystreams.engine.global_state import GlobalStoreView
from pystreams.engine.tracing import Tracing
from pystreams.ids import TaskId, TopicPartition, instance_id_of, transactional_id_of_instance
from pystreams.metrics import Metrics
from pystreams.runtime.catching_up.group_lag import holds_time_back
from pystreams.runtime.catching_up.group_watch import GroupWatch
from pystreams.runtime.catching_up.stages import stages_of
from pystreams.runtime.group.client_in_group import ClientInGroup
from pystreams.runtime.recovery.neighbours import Neighbours
from pystreams.runtime.restoring.group_commits import GroupCommits
from pystreams.runtime.restoring.load import Load
from pystreams.runtime.restoring.restore_listener import RestoreListener
from pystreams.runtime.restoring.tombstones import Tombstones
from pystreams.runtime.snapshots.client_snapshots import ClientSnapshots
from pystreams.runtime.tasks.last_commits import NewestOffsets
from pystreams.runtime.tasks.start_positions import offset_ago
from pystreams.runtime.tasks.state_cleanup import StateCleanup
from pystreams.state.disk.directory import StateDirectory
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.disk.worker_number import WorkerNumber
from pystreams.take_over.hand_over_record import HandOverCheck
from pystreams.take_over.last_run import TopologyInUse
from pystreams.topics.topic_plan import written_topics
from pystreams.topology.built import BuiltTopology, SubTopology


@dataclass(frozen=True, slots=True)
class ClientContext:
    """One application, running in one process. ``inputs`` are the input partitions of every task of the topology."""

    built: BuiltTopology
    config: StreamsConfig
    broker: Broker
    admin: Admin
    clock: Clock
    metrics: Metrics
    directory: StateDirectory
    cleanup: StateCleanup
    hand_over: HandOverCheck
    #: Saves the topology when it processes records; knows which stores have begun anew.
    in_use: TopologyInUse
    resources: RocksResources
    process_id: str
    #: Makes this client's names differ from those of other clients with the same process id.
    worker: WorkerNumber
    inputs: Mapping[TaskId, frozenset[TopicPartition]]
    partition_count: Callable[[str], int]
    #: Computes how far stream time may advance while other tasks lag; None if it does not wait for other tasks.
    watch: GroupWatch | None = None
    #: Notices that other processes on this machine have died; None if the log notices it.
    neighbours: Neighbours | None = None
    restore_listener: RestoreListener | None = None
    #: Traces the tasks; None: nothing is traced.
    tracing: Tracing | None = None
    #: Takes and fetches snapshots of stores; None if there is no place for them.
    snapshots: ClientSnapshots | None = None
    #: How busy the threads are, so that restoring takes little from processing.
    load: Load = field(default_factory=Load)
    #: Chooses the thread that sends the group the state of all threads, and keeps what one thread has received for all.
    in_group: ClientInGroup = field(default_factory=ClientInGroup)
    tombstones: Tombstones = field(init=False)
    #: How far the group has come, for standbys.
    commits: GroupCommits = field(init=False)
    newest_offsets: NewestOffsets = field(default_factory=NewestOffsets)
    #: The records that tasks have left out.
    left_out: LeftOut = field(init=False)
    #: Read-only views of the global stores for tasks, once these stores are filled.
    global_stores: dict[str, GlobalStoreView] = field(default_factory=dict)
    #: Tasks with stores.
    stateful: frozenset[TaskId] = field(init=False)
    #: Tasks with stores, and tasks whose records reach a store through internal topics: a record that one of these
    #: tasks loses is missing in state.
    feeding_state: frozenset[TaskId] = field(init=False)

    def __post_init__(self) -> None:
        is_java = self.config.stream_time == "java"
        unbounded = stages_of(self.built, self.inputs).waiting if is_java else frozenset[int]()
        left_out = LeftOut(self.config.errors_dead_letter_queue_topic_name, unbounded)
        object.__setattr__(self, "left_out", left_out)
        object.__setattr__(self, "tombstones", Tombstones(self.built, self.admin))
        commits = GroupCommits(self.admin, self.built.application_id, self.clock)
        object.__setattr__(self, "commits", commits)
        stateful = frozenset(task for task in self.inputs if self.subtopology(task).stores)
        object.__setattr__(self, "stateful", stateful)
        feeding = _feeding_state(self.built.subtopologies)
        object.__setattr__(
            self, "feeding_state", frozenset(task for task in self.inputs if task.subtopology in feeding)
        )

    @property
    def changelogs_ahead(self) -> bool:
        """Whether changelogs may hold records that were not committed, or that a hand-over has undone."""
        return not self.broker.transactional or bool(self.hand_over.attempt)

    @property
    def transaction_content(self) -> TransactionContent:
        """The topics and the group that the transactions of the application's threads may include."""
        dead_letters = self.config.errors_dead_letter_queue_topic_name
        return TransactionContent(self.built.application_id, written_topics(self.built, dead_letters))

    def subtopology(self, task: TaskId) -> SubTopology:
        return self.built.subtopologies[task.subtopology]

    def offset_reset(self, task: TaskId, topic: str) -> str:
        """Where to start in a topic without a committed offset. Internal topics are always read from their beginning,
        because none of their records may be skipped."""
        if topic in self.built.internal_topics:
            return "earliest"
        source = self.subtopology(task).source_for(topic)
        chosen = source.auto_offset_reset if source is not None else None
        return chosen or self.config.auto_offset_reset

    def offset_ago(self, partition: TopicPartition, duration_ms: int) -> int:
        """See ``positions.offset_ago``."""
        return offset_ago(self.admin, self.clock, partition, duration_ms)

    def everything_is_committed(self) -> bool:
        """True if the group's committed offsets are the end offsets of all inputs, and stream time does not wait for
        other tasks: otherwise the results that become final when it no longer waits would still be missing."""
        admin, inputs = self.admin, sorted({p for of_task in self.inputs.values() for p in of_task})
        before = admin.end_offsets(inputs)
        committed = admin.group_offsets(self.built.application_id, stable=False)
        beginnings = admin.beginning_offsets(inputs)
        reached = {p: max(committed[p].offset if p in committed else 0, beginnings[p]) for p in inputs}
        # End offsets only grow: if they are the same before and after the other requests, they were so in between.
        if not reached == before == admin.end_offsets(inputs):
            return False
        return not any(
            holds_time_back({p: committed[p] for p in of_task if p in committed})
            for of_task in self.inputs.values()
        )

    def changelogs(self) -> dict[TaskId, frozenset[TopicPartition]]:
        """The changelog partitions of each task that has some."""
        return self._partitions_of(lambda sub: sub.changelogs)

    def source_changelogs(self) -> dict[TaskId, frozenset[TopicPartition]]:
        """The input partitions of each task that stand in for changelogs."""
        return self._partitions_of(lambda sub: sub.source_changelogs)

    def _partitions_of(
        self, topics_of: Callable[[SubTopology], Mapping[str, str]]
    ) -> dict[TaskId, frozenset[TopicPartition]]:
        return {
            task: frozenset(TopicPartition(topic, task.partition) for topic in topics.values())
            for task in sorted(self.inputs)
            if (topics := topics_of(self.subtopology(task)))
        }

    def instance_id(self, thread: int) -> str | None:
        """The group instance id of a thread; None: the thread is not a static member."""
        given = self.config.group_instance_id
        return None if given is None else instance_id_of(given, self.worker.number, thread)

    def transactional_id(self, thread: int) -> str:
        """The transactional id of a thread. A static member that comes back has the same id as before, so it ends the
        transaction that it has left open."""
        instance_id = self.instance_id(thread)
        if instance_id is not None:
            return transactional_id_of_instance(self.built.application_id, instance_id)
        return f"{self.built.application_id}-{self.process_id}-{self.worker.number}-{thread}"

    def local_state(self) -> dict[TaskId, int]:
        """The sum of changelog offsets of each task whose state is on this machine's disk."""
        return {task: sum(offsets.values()) for task, offsets in self.directory.local_tasks().items()}


def _feeding_state(subtopologies: Sequence[SubTopology]) -> set[int]:
    """The sub-topologies whose records can reach a store."""
    feeding: set[int] = set()
    found = {sub.id for sub in subtopologies if sub.stores}
    while found - feeding:
        feeding |= found
        fed = {topic for sub in subtopologies if sub.id in feeding for topic in sub.repartition_source_topics}
        found = {sub.id for sub in subtopologies if fed & set(sub.sink_topics)}
    return feeding
