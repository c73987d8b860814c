"""The thread that keeps the global stores of a process up to date. It reads all partitions of their topics, and is no
member of a group.

Source: org.apache.kafka.streams.processor.internals.GlobalStreamThread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

from pystreams.broker.port import Consumer
from pystreams.clock import Deadline
from pystreams.engine.global_state import GlobalState
from pystreams.errors import (
    BrokerUnavailableError,
    OffsetOutOfRangeError,
    StateCorruptedError,
    StreamsError,
)
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.recovery.error_answers import ErrorAnswers
from pystreams.runtime.recovery.hang_watch import HangWatch
from pystreams.runtime.recovery.stall_watch import StallWatch
from pystreams.runtime.recovery.trouble import Trouble
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.threads.thread_end import close_all, placed
from pystreams.runtime.threads.thread_state import GLOBAL_THREAD_SUCCESSORS, GlobalThreadState
from pystreams.take_over.hand_over_record import state_origin
from pystreams.topology.built import BuiltTopology
from pystreams.transitions import check_transition

log = logging.getLogger(__name__)

_POLL_MS: Final = 100.0
#: How long to wait before asking again a log or a schema registry that did not answer.
_PAUSE_S: Final = 0.5
_WAIT_S: Final = 0.1
_CREATED, _RUNNING = GlobalThreadState.CREATED, GlobalThreadState.RUNNING


class GlobalThread:
    """Reads the topics up to the end offsets that they have at its start, then continues until it is stopped.

    Every process has its own stores, in a directory of its own: ``global-<number of the client>``.
    """

    def __init__(
        self, name: str, context: ClientContext, on_failure: Callable[[BaseException], None]
    ) -> None:
        """``on_failure`` is called, from the thread, with the error that ended it while it was ``RUNNING``."""
        self.name = name
        self.state = GlobalThreadState.CREATED
        self.failure: BaseException | None = None
        self._context = context
        self._on_failure = on_failure
        #: Notified when the state changes.
        self._changed = threading.Condition()
        self._stores: GlobalState | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._trouble = Trouble(context.clock, context.config.task_timeout_ms)
        self._hangs = HangWatch(name, context.clock, context.config.stall_timeout_ms)
        #: To errors of reading. ``wipe`` is handled where the stores are opened (``_open``), and where they are closed
        #: at the thread's end (``_run``).
        self._answers = ErrorAnswers({"retry": self._retry, "redo": self._redo})

    def start(self) -> None:
        """Begin to read. Call ``wait_ready`` then."""
        self._thread.start()

    def wait_ready(self, timeout_s: float) -> bool:
        """Wait until the stores are filled or the thread gives up; False if neither happens in time. Raises the error
        of a thread that has failed."""
        ready = self._wait_while(_CREATED, timeout_s=timeout_s)
        if self.failure is not None:
            raise self.failure
        return ready

    def stop(self) -> None:
        """Ask the thread to end soon. May be called at any time."""
        with self._changed:
            if self._going:
                self._enter(GlobalThreadState.PENDING_SHUTDOWN)
        if self._stores is not None:
            self._stores.interrupt()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    # Life

    def _run(self) -> None:
        closing: list[Callable[[], None]] = [self._hangs.close]
        try:
            self._hangs.start()
            self._hangs.begin_round()
            consumer = self._context.broker.consumer(self.name, "global")
            closing.append(consumer.close)
            stalls = self._stalls_of(consumer)
            state = self._stores = self._open()
            closing.append(lambda: state.close(wipe=isinstance(self.failure, StateCorruptedError)))
            self._fill(state, consumer, stalls)
            closing.append(self._context.global_stores.clear)
            with self._changed:
                if self._going:
                    self._context.global_stores.update(state.stores)
                    self._enter(_RUNNING)
            while self._going:
                self._round(state, consumer, stalls)
        except BaseException as error:  # noqa: BLE001 - raised where the stores are waited for, or by the client
            self._fail(error)
        finally:
            close_all(closing, self.name)
            self._enter(GlobalThreadState.DEAD)

    def _fail(self, error: BaseException) -> None:
        self._hangs.rest()
        self.failure = placed(error, None, self.name)
        if self.state is _RUNNING:
            self._on_failure(self.failure)
            # Tasks read the stores until they are closed, so the stores stay open until ``stop`` is called.
            self._wait_while(_RUNNING)
        else:
            self.stop()

    @property
    def _going(self) -> bool:
        return self.state in (_CREATED, _RUNNING)

    def _enter(self, state: GlobalThreadState) -> None:
        with self._changed:
            old = self.state
            self.state = check_transition(f"thread {self.name}", GLOBAL_THREAD_SUCCESSORS, old, state)
            log.debug("[%s] %s -> %s", self.name, old.name, state.name)
            self._changed.notify_all()

    def _wait_while(self, *states: GlobalThreadState, timeout_s: float | None = None) -> bool:
        """Wait until the thread is in none of these states; False if the time ends first."""
        with self._changed:
            return self._changed.wait_for(lambda: self.state not in states, timeout_s)

    # Opening

    def _open(self) -> GlobalState:
        """The stores as the last run has left them, or empty ones if those are corrupt."""
        self._hangs.begin_round()
        try:
            state = self._state()
            try:
                self._check(state)
            except BaseException:
                state.close()
                raise
        except StateCorruptedError as error:
            log.warning("[%s] %s; deleting them, they will be read anew", self.name, error)
            self._context.directory.wipe_global(self._directory_name)
            state = self._state()
        return state

    @property
    def _directory_name(self) -> str:
        return f"global-{self._context.worker.number}"

    def _state(self) -> GlobalState:
        context = self._context
        return GlobalState(
            context.built,
            context.config,
            context.partition_count,
            metrics=context.metrics,
            clock=context.clock,
            thread_id=self.name,
            directory=context.directory.path / self._directory_name,
            resources=context.resources,
            origin=state_origin(context.broker, ""),
            left_out=context.left_out,
        )

    def _check(self, state: GlobalState) -> None:
        """Raise ``StateCorruptedError`` for stores whose offsets lie, or may lie, outside of their topics."""
        for store in state.without_position():
            raise StateCorruptedError(
                f"it is not known which records the local state of global store {store} contains",
                where=f"state directory {self._context.directory.path / self._directory_name}",
                why="it was filled from another topic, or a crash has interrupted its first commit",
                hint="the store is deleted and read anew",
            )
        positions = state.positions()
        beginnings, ends = self._bounds(list(positions))
        for partition, position in positions.items():
            if not beginnings[partition] <= position <= ends[partition]:
                raise _outside(state, partition, position, beginnings[partition], ends[partition])

    def _bounds(
        self, partitions: Collection[TopicPartition]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """The beginning offsets and the end offsets of partitions now."""
        self._hangs.begin_round()
        beginnings = self._context.admin.beginning_offsets(partitions)
        self._hangs.begin_round()
        ends = self._context.admin.end_offsets(partitions)
        self._hangs.begin_round()
        return beginnings, ends

    # Reading

    def _stalls_of(self, consumer: Consumer) -> StallWatch:
        context = self._context
        return StallWatch(consumer, context.admin, context.clock, context.config.stall_timeout_ms, self.name)

    def _fill(self, state: GlobalState, consumer: Consumer, stalls: StallWatch) -> None:
        """Read every partition up to its present end offset."""
        listener = self._context.restore_listener
        partitions = sorted(state.partitions)
        starts, ends = self._bounds(partitions)
        starts |= state.positions()
        state.start(starts)
        consumer.assign(starts)
        missing = {p for p in partitions if starts[p] < ends[p]}
        log.info("[%s] reading %s", self.name, _spelled(state, {p: ends[p] - starts[p] for p in missing}))
        if listener is not None:
            for p in partitions:
                listener.on_restore_start(p, state.store_of[p.topic], starts[p], ends[p])
        counts = dict.fromkeys(partitions, 0)
        clock, patience_ms = self._context.clock, self._context.config.task_timeout_ms
        deadline = Deadline(clock, patience_ms)
        while missing and self._going:
            read = self._round(state, consumer, stalls)
            for partition, count in read.items():
                counts[partition] += count
                if listener is not None and count:
                    store = state.store_of[partition.topic]
                    listener.on_batch_restored(partition, store, consumer.position(partition), count)
            missing = {p for p in missing if consumer.position(p) < ends[p]}
            deadline = Deadline(clock, patience_ms) if read else deadline
            if deadline.expired():
                raise _silent(state, missing)
        self._hangs.begin_round()
        # Also deletes stores that have left the topology.
        state.apply()
        if listener is not None:
            for p in partitions:
                listener.on_restore_end(p, state.store_of[p.topic], counts[p])

    def _round(
        self, state: GlobalState, consumer: Consumer, stalls: StallWatch
    ) -> Mapping[TopicPartition, int]:
        """Apply the records that have arrived; returns their number by partition. Only reading can be tried again: an
        error while records are applied ends the thread, because some of them have been applied already."""
        self._hangs.begin_round()
        try:
            batches = consumer.poll(_POLL_MS)
            stalls.polled(lambda: state.partitions)
        except OffsetOutOfRangeError as error:
            raise _unread(error) from error
        except StreamsError as error:
            self._answer(error)
            return {}
        for batch in batches:
            self._hangs.begin_round()
            self._add(state, batch)
        if batches:
            self._hangs.begin_round()
            state.apply()
        return {TopicPartition(batch.topic, batch.partition): len(batch) for batch in batches}

    def _add(self, state: GlobalState, batch: RecordBatch) -> None:
        """Decode and buffer a batch. If that needs a schema registry that is not available, wait for it."""
        while self._going:
            try:
                state.add(batch)
                self._trouble.over()
                return
            except StreamsError as error:
                self._answer(error)

    # Handling of errors

    def _answer(self, error: StreamsError) -> None:
        """Handle an error of reading as its ``action`` says. Raises an error that cannot be handled here."""
        answer = self._answers.to(error)
        log.warning("[%s] the topics of global stores cannot be read now: %s", self.name, error)
        answer(error)

    def _retry(self, error: StreamsError) -> None:
        self._wait_while(_CREATED, _RUNNING, timeout_s=_PAUSE_S)
        # A thread that tries again and logs it does not hang.
        self._hangs.begin_round()

    def _redo(self, error: StreamsError) -> None:
        """Pause and try again, for up to ``task_timeout_ms``."""
        self._trouble.note(error, until_commit=False)
        self._retry(error)


class GlobalStores:
    """The global thread of a client, if its topology needs one."""

    def __init__(self, built: BuiltTopology, on_failure: Callable[[BaseException], None]) -> None:
        self._wanted = bool(built.global_stores)
        self._on_disk = any(one.spec.persistent for one in built.global_stores)
        self._on_failure = on_failure
        self._thread: GlobalThread | None = None

    def fill(self, context: ClientContext, stopped: Callable[[], bool]) -> bool:
        """Start the thread and wait until the stores are filled. False if ``stopped`` became true first. Raises the
        error of a thread that has failed."""
        if not self._on_disk:
            context.directory.wipe_globals()
        if not self._wanted:
            return True
        config = context.config
        prefix = config.client_id or f"{config.application_id}-{context.process_id}"
        name = f"{prefix}-{context.worker.number}-GlobalStreamThread"
        thread = self._thread = GlobalThread(name, context, self._on_failure)
        thread.start()
        while not thread.wait_ready(_WAIT_S):
            if stopped():
                thread.stop()
        return thread.state is _RUNNING

    @property
    def failure(self) -> BaseException | None:
        """The error that has ended the thread."""
        return None if self._thread is None else self._thread.failure

    def close(self) -> None:
        """Stop the thread and wait for its end."""
        if self._thread is not None:
            self._thread.stop()
            self._thread.join()


def _spelled(state: GlobalState, missing: Mapping[TopicPartition, int]) -> str:
    """For the log: how much there is to read for which stores."""
    offsets = dict.fromkeys(sorted(state.store_of), 0)
    for partition, count in missing.items():
        offsets[partition.topic] += count
    return ", ".join(f"{count} offsets of {topic}" for topic, count in offsets.items())


def _silent(state: GlobalState, missing: set[TopicPartition]) -> StreamsError:
    return BrokerUnavailableError(
        "the topics of global stores could not be read to their end",
        where=", ".join(
            f"{partition} (store {state.store_of[partition.topic]})" for partition in sorted(missing)
        ),
        why="nothing arrived for task_timeout_ms",
        hint="is the log reachable, and may this application read these topics?",
    )


def _unread(error: OffsetOutOfRangeError) -> StateCorruptedError:
    return StateCorruptedError(
        "the topic of a global store has lost records that were not read yet",
        where=error.where,
        why="they were deleted by its retention, or the topic was made anew",
        hint="start again: the stores are deleted, and read anew from the topic; it should be compacted, "
        "without a time limit",
    )


def _outside(
    state: GlobalState, partition: TopicPartition, position: int, beginning: int, end: int
) -> StateCorruptedError:
    return StateCorruptedError(
        f"the local state of global store {state.store_of[partition.topic]} lies outside of its topic",
        where=f"{partition}, offset {position}",
        why=f"the topic holds offsets {beginning} to {end} (exclusive)",
        hint="the store is deleted and read anew",
    )
