"""A task: queues of input records, the compiled code that processes them, and punctuators. It does not decide when to
commit, and its only access to the broker is the producer that it writes to.

Source: org.apache.kafka.streams.processor.internals.StreamTask.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from pystreams.broker.port import Producer
from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.dsl.operators.base import Folded
from pystreams.engine.codegen import CompiledCode, compile_nodes
from pystreams.engine.failures.drop_counts import DropCounts
from pystreams.engine.failures.handling import Failures, Handlers, Send
from pystreams.engine.failures.left_out import LeftOut
from pystreams.engine.failures.origins import Origins
from pystreams.engine.failures.unmatched import JoinCounts
from pystreams.engine.input.decoding import Refusal, Rows
from pystreams.engine.input.input_decoding import InputForStore, input_decoder
from pystreams.engine.input.partition_group import HeadOrder, PartitionGroup, Run, TimestampOrder
from pystreams.engine.input.record_queue import RecordQueue, first_above
from pystreams.engine.input.turns import Turns
from pystreams.engine.linking import LinkedCode, setting_up
from pystreams.engine.offset_metadata import TIME_IN_FORCE, TIME_SEEN
from pystreams.engine.operator_memory import OperatorMemory
from pystreams.engine.processors.processor_context import Timing
from pystreams.engine.processors.punctuation import NEVER, PunctuationQueue
from pystreams.engine.task_flow import TaskFlow
from pystreams.engine.tracing import Tracing
from pystreams.folders import make_folder
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import names
from pystreams.metrics.registry import Metrics
from pystreams.record import ContextCell, RecordBatch
from pystreams.stream_time import NO_TIME, TIME_MAX
from pystreams.topology.nodes import Node
from pystreams.transitions import check_transition


class Phase(Enum):
    """NEW: the stores are being filled. STARTED: the task processes records. CLOSED: the final phase."""

    NEW = "new"
    STARTED = "started"
    CLOSED = "closed"


PHASE_SUCCESSORS: Mapping[Phase, frozenset[Phase]] = {
    Phase.NEW: frozenset({Phase.STARTED, Phase.CLOSED}),
    Phase.STARTED: frozenset({Phase.CLOSED}),
    Phase.CLOSED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class TaskServices:
    """The objects and functions that a thread shares with its tasks.

    ``partition_count`` returns a topic's number of partitions (for partitioners and windowed keys). ``lag`` returns the
    number of offsets from the consumer's position to the end of a partition, None while that is not known.
    """

    config: StreamsConfig
    metrics: Metrics
    clock: Clock
    producer: Producer
    partition_count: Callable[[str], int]
    lag: Callable[[TopicPartition], int | None]
    thread_id: str
    #: Stores that all tasks of the process read, by name.
    global_stores: Mapping[str, Any] = field(default_factory=dict)
    #: Counts the records that tasks leave out.
    left_out: LeftOut = field(default_factory=LeftOut)
    #: By name, the steps that keep their results until ``flush_folded``, and the number of bytes that each may keep.
    folded: Mapping[str, int] = field(default_factory=dict)
    #: Makes the tasks ``TracedTask``s; None: nothing is traced.
    tracing: Tracing | None = None


class Position(NamedTuple):
    """The position of an input partition: next offset to process, and greatest timestamp processed (-1: none)."""

    offset: int
    partition_time: int


class StreamTask:
    """One task of a sub-topology.

    Its host creates it, calls ``start`` once the stores are filled, feeds it with ``add_batch`` and ``process``, and
    calls ``close`` at the end. A commit takes its ``positions`` and ``operator_state``, and calls ``after_commit`` when
    it is done.
    """

    def __init__(
        self,
        task_id: TaskId,
        nodes: Sequence[Node],
        partitions: Collection[TopicPartition],
        *,
        cell: ContextCell,
        stores: Mapping[str, Any],
        services: TaskServices,
        code: CompiledCode | None = None,
        order: HeadOrder | None = None,
        directory: Path | None = None,
    ) -> None:
        """``nodes`` are those of a sub-topology, with decorated topics; ``cell`` is the one with which ``stores`` were
        opened. ``code`` is the compiled form of the nodes, if the caller has it; ``order`` decides which partition is
        next."""
        self.task_id = task_id
        self.phase = Phase.NEW
        self.stores = stores
        self.partitions = frozenset(partitions)
        self.cell = cell
        self._time = cell.time.task
        self.timing = Timing()
        self.memory = OperatorMemory()
        self.memory.save(*TIME_IN_FORCE, lambda: self._time.ms if self._time.held_ms is not None else None)
        self.memory.save(*TIME_SEEN, lambda: self._time.held_ms)
        self.stream_punctuations = PunctuationQueue()
        self.wall_punctuations = PunctuationQueue()
        self._services = services
        self._directory = directory
        config = services.config
        self._code = code or compile_nodes(
            nodes, f"<pystreams {config.application_id} {task_id.subtopology}>"
        )
        self._order: HeadOrder = TimestampOrder() if order is None else order
        tags = {"thread_id": services.thread_id, "task_id": task_id}
        self._processed = services.metrics.counter(names.PROCESSED, **tags)
        self._process_ms = services.metrics.measure(names.PROCESS_LATENCY, **tags)
        self._punctuated = services.metrics.counter(names.PUNCTUATED, **tags)
        self.flow = TaskFlow(services.metrics, services.clock, **tags)
        handlers = Handlers.of(config)
        self._counts = services.left_out.of_task(task_id)
        self._drops = DropCounts(services.metrics, self.memory, **tags)
        origins = Origins(nodes, self._code.locations)
        self.joins = JoinCounts(origins, services.metrics, **tags)
        self.failures = Failures(
            task_id,
            cell,
            handlers,
            services.producer.send,
            self._drops,
            services.clock,
            origins,
            services.left_out,
        )
        self._linked: LinkedCode | None = None
        self._group = PartitionGroup({}, config.max_task_idle_ms, services.lag, self._order)
        self._paused: set[TopicPartition] = set()
        self._commit_needed = False
        self._interrupted = False
        self._hurried = False

    # Used by the task's code and objects

    @property
    def application_id(self) -> str:
        return self.config.application_id

    @property
    def config(self) -> StreamsConfig:
        return self._services.config

    @property
    def metrics(self) -> Metrics:
        return self._services.metrics

    @property
    def state_dir(self) -> Path:
        """The task's own folder. It is created on access."""
        own = self.config.state_dir / self.application_id / str(self.task_id)
        directory = own if self._directory is None else self._directory
        make_folder(directory)
        return directory

    @property
    def clock(self) -> Clock:
        return self._services.clock

    @property
    def send(self) -> Send:
        """Writes the records of sinks."""
        return self._services.producer.send

    @property
    def partition_count(self) -> Callable[[str], int]:
        return self._services.partition_count

    @property
    def global_stores(self) -> Mapping[str, Any]:
        return self._services.global_stores

    @property
    def stream_time(self) -> int:
        """The stream time in force (ms), -1 before the first record: the greatest timestamp processed, up to the bound
        that ``limit_time`` has set."""
        return self._time.ms

    @property
    def time_seen(self) -> int:
        """The greatest timestamp processed (ms), -1 before the first record."""
        return self._time.seen_ms

    # Life cycle

    def start(
        self,
        positions: Mapping[TopicPartition, Position],
        operator_state: Mapping[str, int],
        stream_time: int = -1,
    ) -> None:
        """Open operators, initialize processors, and continue after the last commit. The stores must be filled.

        ``operator_state`` is what ``operator_state()`` returned at that commit; ``stream_time`` is the task's, if it is
        greater than the times of its partitions. Raises ``ProcessingError`` if a processor's ``init`` raises.
        """
        self._enter(Phase.STARTED)
        self._counts.take_back()
        self.memory.at_last_commit = operator_state
        self._drops.start()
        linked = self._linked = LinkedCode(self._code, self, self._services.folded)
        queues: dict[TopicPartition, RecordQueue] = {}
        for partition in sorted(self.partitions):
            with setting_up(f"the source of {partition}", self.task_id):
                queues[partition] = self._queue(partition, linked)
        for partition, (offset, time) in positions.items():
            queues[partition].resume_at(offset, time)
        seen = max(
            stream_time, *(time for _, time in positions.values()), self.memory.load(*TIME_SEEN, NO_TIME)
        )
        self._time.go_on(self.memory.load(*TIME_IN_FORCE, seen), seen)
        self._group = PartitionGroup(queues, self.config.max_task_idle_ms, self._services.lag, self._order)
        linked.init()
        self.limit_time(self.cell.time.bound_ms)

    def folded(self, step: str) -> Folded:
        """One of the steps that keep their results."""
        assert self._linked is not None, "the task has been started"
        return self._linked.folds[step]

    def flush_folded(self) -> None:
        """Have the steps that keep their results write them to their stores, when no more records will come."""
        assert self._linked is not None, "the task has been started"
        self._linked.flush_folded()

    def close(self) -> None:
        """Close processors and operators, but not the stores, which the owner closes. All are closed before the first
        error of one of them is raised. Records that were left out since the last commit do not count any more."""
        if self.phase is Phase.STARTED:
            self._counts.take_back()
        self._enter(Phase.CLOSED)
        linked, self._linked = self._linked, None
        for queue in self._group.queues.values():
            queue.clear()
        if linked is not None:
            linked.close()

    def _enter(self, phase: Phase) -> None:
        self.phase = check_transition(f"task {self.task_id}", PHASE_SUCCESSORS, self.phase, phase)

    def _queue(self, partition: TopicPartition, linked: LinkedCode) -> RecordQueue:
        source = self._code.graph.source_of(partition.topic)
        decoder = input_decoder(source, partition.topic, self.config, self.clock.now_ms)

        def refuse(rows: Rows, position: int, refusal: Refusal) -> None:
            self._commit_needed = True
            self.failures.refuse(source.name, rows, position, refusal)

        reader, turns = linked.readers[source.name], linked.turns.get(source.name)
        flow = self.flow.source(source.name, partition.topic)
        return RecordQueue(partition, decoder, reader, turns, refuse, flow)

    # Input

    def input_for_store(self, topic: str) -> InputForStore:
        """A reader of one of the task's topics, for a store that is restored from it."""
        source = self._code.graph.source_of(topic)
        with setting_up(f"the source of {topic}", self.task_id):
            return InputForStore(source, topic, self.config, self.clock.now_ms)

    def add_batch(self, batch: RecordBatch, queue_of: TopicPartition | None = None) -> None:
        """Buffer a batch of one of the task's partitions. A bad record is handled when it is its turn.

        ``queue_of`` is the partition whose queue gets the batch, if that is not the batch's own partition: the test
        driver reads all topics of a pattern as one.
        """
        partition = queue_of or TopicPartition(batch.topic, batch.partition)
        queue = self._group.queues[partition]
        had_head = queue.rows is not None
        queue.add(batch)
        self._counts.add_read(partition.topic, len(batch))
        queue.flow.read(batch)
        if not had_head and queue.rows is not None:
            self._group.touched(queue)

    def passed(self, partition: TopicPartition, records: int, next_offset: int, latest: int) -> None:
        """Note that the next records of a partition were processed by other means than compiled code. None of its
        records is buffered. ``latest`` is their greatest timestamp."""
        self._counts.add_read(partition.topic, records)
        self._processed.add(records)
        self._group.queues[partition].passed(next_offset, latest)
        self._time.see(latest)
        self._commit_needed = True

    def buffered(self, partition: TopicPartition) -> int:
        """The number of buffered records of a partition."""
        return self._group.queues[partition].size

    @property
    def paused(self) -> AbstractSet[TopicPartition]:
        """Partitions that must not be read for now, because enough of their records are buffered."""
        return self._paused

    def flow_changes(self) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Partitions to pause and to resume since the last call.

        A partition pauses above ``buffered_records_per_partition`` and resumes at half of it: pausing discards the
        records that the client has prefetched, so it must not happen often.
        """
        limit = self.config.buffered_records_per_partition
        pause = [p for p, queue in self._group.queues.items() if queue.size > limit and p not in self._paused]
        resume = [p for p in self._paused if self._group.queues[p].size <= limit // 2]
        self._paused.update(pause)
        self._paused.difference_update(resume)
        return pause, resume

    # Processing

    def interrupt(self) -> None:
        """Finish the current record and process no other one, ever. May be called from another thread."""
        self._interrupted = True
        self.timing.interrupted = True

    def hurry(self) -> None:
        """Make the running call of ``process`` return after the current record. May be called from another thread. If
        the call has just returned, the next one may end early, but it still processes a record."""
        self._hurried = True
        self.timing.interrupted = True

    @property
    def head_time(self) -> int | None:
        """The least timestamp (ms) of the heads of all partitions, -1 for a bad record; None: nothing is buffered."""
        return self._group.head_time

    def process(self, max_records: int, now_ms: int, until_ms: int | None = None) -> int:
        """Process up to ``max_records``, before the first that is later than ``until_ms``, and call the stream-time
        punctuators that become due; end early if a processor requests a commit. Returns the number of records,
        including bad ones; 0 if there are none, or if the task waits for a partition without records
        (``max_task_idle_ms``).

        Raises ``ProcessingError``, ``SerializationError`` or ``ProductionError`` if a handler chooses to fail.
        """
        if self.phase is not Phase.STARTED:
            return 0
        group, timing = self._group, self.timing
        self._hurried = False
        began_ms = self._services.clock.monotonic_ms()
        self.flow.begin(began_ms)
        refused, done = group.settle(), 0
        while (
            done < max_records and (until_ms is None or group.has_head(until_ms)) and group.is_ready(now_ms)
        ):
            # In this order, because ``interrupt``, which another thread calls, sets the two in the reverse order.
            timing.interrupted = False
            if self._interrupted or (self._hurried and done):
                break
            turns = group.next_turns(max_records - done, until_ms)
            if turns is None:
                done += self._run(group.next_run(max_records - done, until_ms))
            else:
                done += self._turns(turns)
            self._punctuate_stream_time()
            refused += group.settle()
            if timing.commit_requested:
                break
        if refused and not done:
            # Records that the caches forwarded at the last commit may have scheduled a punctuator that is due already.
            self._punctuate_stream_time()
        if done:
            self._processed.add(done)
            ended_ms = self._services.clock.monotonic_ms()
            self._process_ms.record(ended_ms - began_ms, done, ended_ms)
            self.flow.measure()
        return done + refused

    def _punctuate_stream_time(self) -> int:
        """Call the stream-time punctuators that are due; returns the number of calls."""
        if self.stream_punctuations.next_time_ms > self._time.ms:
            return 0
        called = self.stream_punctuations.punctuate(self._time.ms)
        self._punctuated.add(called)
        return called

    def _run(self, run: Run) -> int:
        """Process a run, or only up to the record at which a punctuator becomes due. Returns the number of records."""
        queue, rows, start, end = run
        due = self.stream_punctuations.next_time_ms
        if due <= self._time.ms:
            end = start + 1
        elif due <= min(rows.max_timestamp, self._time.bound_ms):
            end = min(end, first_above(rows.timestamps, start, end, due - 1) + 1)
        self.failures.rows = (rows,)
        end = queue.read(rows, start, end)
        if end == start:
            self._group.touched(queue)
            return 0
        self._commit_needed = True
        queue.advance(end)
        self._time.see(queue.partition_time)
        self._group.touched(queue)
        if queue.flow.takes_ages:
            queue.flow.processed(rows.timestamps[start:end])
        return end - start

    def _turns(self, turns: Turns) -> int:
        """Process records of several queues in turns, until a punctuator is due. Returns the number of records."""
        queues, rows, ends, order = turns
        timing = self.timing
        due = self.stream_punctuations.next_time_ms
        if due <= self._time.bound_ms:
            # A punctuator that has just been scheduled is due at time 0.
            del order[bisect_left(order, (due, -1)) + 1 :]
        self.failures.rows = rows
        readers = [
            queue.in_turns(batch, queue.position, end)
            for queue, batch, end in zip(queues, rows, ends, strict=True)
            if queue.in_turns is not None
        ]
        for reader in readers:
            next(reader, None)
        places, done = [place for _, place in order], 0
        try:
            for place in places:
                if timing.interrupted:
                    break
                next(readers[place], None)
                done += 1
        finally:
            if done:
                self._commit_needed = True
                self._time.see(order[done - 1][0])
            for place, queue in enumerate(queues):
                if count := places[:done].count(place):
                    at = queue.position
                    queue.advance(at + count)
                    if queue.flow.takes_ages:
                        queue.flow.processed(rows[place].timestamps[at : at + count])
                self._group.touched(queue)
        return done

    def punctuate_wall_clock(self, now_ms: int) -> int:
        """Call each wall-clock punctuator that is due once. Returns the number of calls."""
        if self.phase is not Phase.STARTED:
            return 0
        called = self.wall_punctuations.punctuate(now_ms)
        if called:
            self._punctuated.add(called)
            self._commit_needed = True
        return called

    def next_wall_clock_punctuation_ms(self) -> int | None:
        """The time (ms) at which the next wall-clock punctuator is due; None if none is scheduled."""
        next_time_ms = self.wall_punctuations.next_time_ms
        return None if next_time_ms == NEVER else next_time_ms

    # Stream time

    def limit_time(self, bound_ms: int) -> None:
        """Set the bound of stream time (ms): older records are not expected; ``TIME_MAX``: there is no bound.

        A lower bound than before is in force at once, but stream time never goes back if it is higher already. A higher
        bound comes into force with the next flush, which then emits the results that have become final;
        ``commit_needed`` is True until then. A bound that is set before ``start`` is in force from the beginning.
        """
        if self.cell.time.limit(bound_ms) and self.phase is Phase.STARTED:
            self._commit_needed = True
            # Once no task lags any more, final results do not wait for the commit interval.
            self.timing.commit_requested |= bound_ms == TIME_MAX

    def flush(self, flush_caches: Callable[[], None]) -> None:
        """Flush the caches of the stores, put the bound into force, and flush what this has changed."""
        flush_caches()
        if (
            self.phase is Phase.STARTED
            and self.cell.time.flushed(flush_caches)
            and self._punctuate_stream_time()
        ):
            flush_caches()

    # Commit

    @property
    def commit_requested(self) -> bool:
        """Whether a processor has requested a commit since the last one."""
        return self.timing.commit_requested

    @property
    def commit_needed(self) -> bool:
        """Whether a record was processed or a punctuator called since the last commit."""
        return self._commit_needed

    def positions(self) -> dict[TopicPartition, Position]:
        """The positions to commit, for each partition whose position is known."""
        return {
            partition: Position(queue.next_offset, queue.partition_time)
            for partition, queue in self._group.queues.items()
            if queue.next_offset is not None
        }

    def operator_state(self) -> dict[str, int]:
        """The values that operators need after the next start, by ``py/<node>/<name>``."""
        return self.memory.values()

    def after_commit(self) -> None:
        """The host has committed everything processed so far."""
        self._commit_needed = False
        self._counts.commit(self._waiting())
        for join in self.joins.commit():
            self._counts.add_unmatched(join)
        self.flow.measure()
        self.timing.commit_requested = False

    def _waiting(self) -> dict[str, int]:
        """The number of buffered records, by topic."""
        waiting: dict[str, int] = {}
        for partition, queue in self._group.queues.items():
            waiting[partition.topic] = waiting.get(partition.topic, 0) + queue.size
        return waiting

    def partition_time(self, partition: TopicPartition) -> int:
        """The greatest timestamp processed of a partition (ms), -1 before the first."""
        return self._group.queues[partition].partition_time
