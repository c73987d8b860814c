"""The only loop: membership, restore, poll, process, punctuate, commit.

A stream thread owns its broker clients, its cache and its tasks; nothing of theirs is touched by another thread. What
others want of it (a commit, a look into a store) they ask for, and get between two records.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

from pystreams.broker.port import Assigned, Lost, MemberEvent
from pystreams.clock import Deadline
from pystreams.errors import (
    OffsetOutOfRangeError,
    StateCorruptedError,
    StreamsError,
    TaskMigratedError,
    TopologyError,
)
from pystreams.ids import TopicPartition
from pystreams.metrics import names
from pystreams.runtime.group.group_assignor import GroupAssignor
from pystreams.runtime.group.group_wait import GroupWait
from pystreams.runtime.group.membership_data import (
    Plan,
    Subscription,
    decode_plan,
    encode,
    pack_topology,
    unpack_topology,
)
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.restore import Restorer
from pystreams.runtime.tasks.stopwatch import Stopwatch
from pystreams.runtime.tasks.task_manager import TaskManager, ThreadClients
from pystreams.runtime.tasks.task_opening import TaskOpener
from pystreams.runtime.threads.progress import ThreadProgress, restore_progress, task_progress
from pystreams.runtime.threads.thread_calls import CallQueue
from pystreams.runtime.threads.thread_end import ask_all_to_stop, placed
from pystreams.runtime.threads.thread_summary import ThreadSummary
from pystreams.runtime.threads.trouble import Trouble
from pystreams.runtime.transitions import THREAD_SUCCESSORS, ThreadState, check_transition
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.topology.fingerprint import first_difference

log = logging.getLogger(__name__)

T = TypeVar("T")

#: One round of processing aims at this time, so that membership, commits and stops never wait long.
_ROUND_MS = 50.0
#: Records a task may process in one round, at most.
_ROUND_RECORDS_MAX = 4_096
#: How long to wait for records while a rebalance is under way.
_JOINING_POLL_MS = 10.0
#: Restoring may use this much of a round while other tasks are running, and this much if none is.
_RESTORE_BESIDE_MS, _RESTORE_ALONE_MS = 20.0, 200.0
_RETRY_PAUSE_MS = 100.0
_SNAPSHOT_INTERVAL_MS = 100.0
#: What a member tells the group of its topology: Kafka keeps what all members tell in one record of 1 MB.
_TOPOLOGY_BYTES = 8_192


class ThreadOwner(Protocol):
    """The client, as its threads see it. Called from the threads."""

    def thread_changed(self, thread: StreamThread, old: ThreadState, new: ThreadState) -> None: ...

    def thread_failed(self, thread: StreamThread, error: BaseException) -> bool:
        """The thread is about to end because of ``error``; True if it is to tell the group to stop altogether."""
        ...

    def thread_ended(self, thread: StreamThread) -> None:
        """Everything that the thread held is released."""
        ...

    def application_shutdown(self) -> None:
        """A member of the group asked the whole application to stop."""
        ...

    def housekeeping(self) -> None:
        """Called now and then by every thread."""
        ...


class StreamThread:
    """Works on the tasks that the group assigns to it, until it is stopped or fails."""

    def __init__(
        self,
        name: str,
        index: int,
        transactional_id: str,
        context: ClientContext,
        owner: ThreadOwner,
        cache_bytes: int,
    ) -> None:
        self.name = name
        self.index = index
        self.state = ThreadState.CREATED
        self.error: BaseException | None = None
        self.shutdown_requested = False
        self.snapshot = ThreadProgress(name, ThreadState.CREATED)
        self._context = context
        self._owner = owner
        self._transactional_id = transactional_id
        self._clock = context.clock
        self._cache = ThreadCache(cache_bytes)
        self._cache_bytes = cache_bytes
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._stopping = threading.Event()
        self._gone_for_good = False
        self._commit_asked = threading.Event()
        self._calls: CallQueue[TaskManager] = CallQueue(name)
        #: What the membership told and is not carried out yet, because something failed on the way.
        self._events: deque[MemberEvent] = deque()
        self._clients: ThreadClients
        self._tasks: TaskManager
        self._restorer: Restorer
        self._plan = Plan()
        self._round_records = 1
        self._topology = pack_topology(context.in_use.now.topology)
        self._records = 0
        self._worked = False
        self._last_commit_ms = self._clock.monotonic_ms()
        self._last_snapshot_ms = 0.0
        config = context.config
        self._trouble = Trouble(self._clock, config.task_timeout_ms)
        self._commit_interval_ms = config.effective_commit_interval_ms(
            transactional=context.broker.transactional
        )
        self._group_wait: GroupWait | None = None
        self._summary = ThreadSummary(name, config.log_summary_interval_ms, self._clock)
        self._commits = context.metrics.counter(names.COMMITTED, thread_id=name)
        self._polls = context.metrics.counter(names.POLLED, thread_id=name)

    # From other threads

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, for_good: bool = False) -> None:
        """End after the record at work, with a commit. Returns at once. A static member leaves only ``for_good``:
        otherwise it is expected back."""
        self._gone_for_good |= for_good
        self._stopping.set()
        if hasattr(self, "_tasks"):
            self._tasks.interrupt()

    def request_commit(self) -> None:
        """Commit in this round or the next."""
        self._commit_asked.set()

    def join(self, timeout_ms: float | None = None) -> bool:
        """Wait for the end; True if it has come."""
        if self._thread.is_alive() and not self.is_current:
            self._thread.join(None if timeout_ms is None else timeout_ms / 1000)
        return not self._thread.is_alive()

    @property
    def is_current(self) -> bool:
        """True if this is the thread that asks."""
        return self._thread is threading.current_thread()

    @property
    def alive(self) -> bool:
        return self.state not in (ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD)

    def call(self, function: Callable[[TaskManager], T]) -> Future[T]:
        """Have ``function`` called by the thread between two rounds. The future fails if the thread ends before."""
        return self._calls.put(function)

    def owners_of(self, subtopology: int) -> dict[int, str]:
        """Which thread of the group has each partition of a sub-topology with stores, as the group has told last."""
        return self._plan.owners_of(subtopology)

    def resize_cache(self, cache_bytes: int) -> None:
        """Give the thread another share of the cache budget: with a commit, since entries that must go may be dirty."""
        self._cache_bytes = cache_bytes
        self.request_commit()

    # Life

    def _run(self) -> None:
        closing: list[Callable[[], None]] = []
        try:
            self._open(closing)
            while not self._stopping.is_set():
                self._guarded_round()
            self._set_state(ThreadState.PENDING_SHUTDOWN)
            self._close_tasks()
        except BaseException as error:  # noqa: BLE001 - whatever ends a thread is its owner's to judge
            self._fail(error)
        finally:
            self._release(closing)

    def _close_tasks(self) -> None:
        try:
            self._tasks.close(commit=True)
        except TaskMigratedError as error:
            log.warning("[%s] stopped without a last commit: %s", self.name, error)

    def _open(self, closing: list[Callable[[], None]]) -> None:
        context, broker = self._context, self._context.broker
        self._set_state(ThreadState.STARTING)
        if self.index == 1:
            # One thread tells it for all.
            group, patience_ms = context.built.application_id, context.config.session_timeout_ms
            self._group_wait = GroupWait(context.admin, group, patience_ms, self._clock)
        consumer = broker.consumer(f"{self.name}-consumer")
        closing.append(consumer.close)
        restore_consumer = broker.consumer(f"{self.name}-restore-consumer", "restore")
        closing.append(restore_consumer.close)
        producer = broker.producer(f"{self.name}-producer", self._transactional_id)
        closing.append(producer.close)
        member = broker.member(
            self.name,
            context.built.application_id,
            sorted({partition.topic for inputs in context.inputs.values() for partition in inputs}),
            self._subscription,
            GroupAssignor(
                context.inputs,
                context.stateful,
                context.built.fingerprint,
                self._topology,
            ),
            context.instance_id(self.index),
        )
        closing.append(lambda: member.close(leave=True if self._gone_for_good else None))
        self._clients = ThreadClients(member, consumer, producer)
        self._restorer = Restorer(restore_consumer, context.admin, context.clock, context.restore_listener)
        opener = TaskOpener(context, consumer, producer, self._cache, self.name)
        stopwatch = Stopwatch(self.name, self._clock)
        closing.append(stopwatch.close)
        self._tasks = TaskManager(context, self._clients, opener, self._restorer, stopwatch, self.name)

    def _subscription(self) -> bytes:
        context = self._context
        return encode(
            Subscription(
                fingerprint=context.built.fingerprint,
                process_id=context.process_id,
                thread=self.name,
                state=context.local_state(),
                shutdown=self.shutdown_requested,
                topology=self._topology
                if self.index == 1 and len(self._topology) <= _TOPOLOGY_BYTES
                else b"",
            )
        )

    def _fail(self, error: BaseException) -> None:
        working = self._tasks.working if hasattr(self, "_tasks") else None
        error = placed(error, None if working is None else working.task_id, self.name)
        self.error = error
        if self.state is not ThreadState.PENDING_SHUTDOWN:
            self._set_state(ThreadState.PENDING_SHUTDOWN)
        if hasattr(self, "_tasks"):
            try:
                self._tasks.close(commit=False)
            except StreamsError:
                log.exception("[%s] a failure while closing after another", self.name)
        if self._owner.thread_failed(self, error) and hasattr(self, "_clients"):
            self.shutdown_requested = True
            ask_all_to_stop(self._clients.member, self._clock, self.name)

    def _release(self, closing: list[Callable[[], None]]) -> None:
        # In reverse: the member leaves first, while what it worked with is still there.
        for close in reversed(closing):
            try:
                close()
            except Exception:
                log.exception("[%s] a failure while closing %s", self.name, close.__qualname__)
        self._set_state(ThreadState.DEAD)
        self._publish()
        self._calls.refuse()
        self._owner.thread_ended(self)

    # The loop

    def _guarded_round(self) -> None:
        """One round; what it raises is answered by the error's own ``action``."""
        try:
            self._round()
            self._trouble.succeeded(restoring=not self._tasks.settled, caught_up=self._tasks.caught_up)
        except StreamsError as error:
            if error.action == "fail":
                raise
            log.warning("[%s] %s", self.name, error)
            working, self._tasks.working = self._tasks.working, None
            if error.action == "rejoin":
                self._rejoin()
            elif isinstance(error, StateCorruptedError) and working is not None:
                self._set_state(ThreadState.PARTITIONS_ASSIGNED)
                self._tasks.wipe(working.task_id, error)
            elif error.action in ("retry", "redo"):
                self._retry(error, halfway=working is not None or error.action == "redo")
            else:
                raise

    def _round(self) -> None:
        self._answer_calls()
        # The member tells an assignment once: it is carried out before the next poll, however often that takes.
        if not self._events:
            self._events.extend(self._clients.member.poll())
        if self._group_wait is not None:
            self._group_wait.tell()
        while self._events:
            self._apply(self._events[0])
            self._events.popleft()
        if not self._tasks.settled:
            self._fill_tasks()
        self._poll()
        self._work()
        self._publish_now_and_then()

    def _answer_calls(self) -> None:
        if self._calls.waiting:
            with self._cache.without_loading():
                self._calls.answer(self._tasks)

    def _apply(self, event: MemberEvent) -> None:
        match event:
            case Lost(reason):
                log.warning("[%s] lost the membership: %s", self.name, reason)
                self._set_state(ThreadState.PARTITIONS_REVOKED)
                self._tasks.lose_all()
            case Assigned(generation, partitions, user_data):
                self._group_wait = None
                plan = decode_plan(user_data)
                if plan.error:
                    raise self._refused(plan)
                self._plan = plan
                if plan.shutdown:
                    self._owner.application_shutdown()
                self._take_on(generation, partitions, plan.tasks, plan.members)

    def _refused(self, plan: Plan) -> TopologyError:
        """The group runs another topology: the one that the leader told, else the one that ran last as we started."""
        context = self._context
        before = context.in_use.before
        runs = unpack_topology(plan.topology) if plan.topology else before and before.topology
        difference = first_difference(runs, context.in_use.now.topology) if runs else ""
        return TopologyError(
            f"the group refuses this member: {plan.error}",
            where=f"application {context.built.application_id}, {self.name}",
            why=f"the first difference: {difference}" if difference else "",
            hint="stop the other members first, or give the changed application another application_id",
        )

    def _take_on(
        self, generation: int, partitions: tuple[TopicPartition, ...], tasks: int, members: int
    ) -> None:
        before = self._tasks.task_ids()
        if not before:
            self._context.hand_over.check()
        if before and not {p for task in self._tasks.tasks() for p in task.inputs} <= set(partitions):
            self._set_state(ThreadState.PARTITIONS_REVOKED)
        self._set_state(ThreadState.PARTITIONS_ASSIGNED)
        self._tasks.assign(partitions)
        now = self._tasks.task_ids()
        log.info(
            "[%s] generation %d: tasks %s (new %s, gone %s)",
            self.name,
            generation,
            _listed(now),
            _listed(set(now) - set(before)),
            _listed(set(before) - set(now)),
        )
        if not now:
            log.info(
                "[%s] has nothing to do: by the partitions of its input topics the application's work is divided into"
                " %d task%s, there are %d threads, and a task runs in one thread at a time",
                self.name,
                tasks,
                "" if tasks == 1 else "s",
                members,
            )

    def _fill_tasks(self) -> None:
        self._tasks.open_waiting()
        if self._tasks.running:
            self._tasks.restore(_RESTORE_BESIDE_MS, 0)
        else:
            self._tasks.restore(_RESTORE_ALONE_MS, _JOINING_POLL_MS)

    def _poll(self) -> None:
        if self.state is ThreadState.PARTITIONS_ASSIGNED and self._tasks.settled:
            self._set_state(ThreadState.RUNNING)
        try:
            batches = self._clients.consumer.poll(self._poll_timeout_ms())
        except OffsetOutOfRangeError as error:
            self._tasks.check_positions(error)
            return
        self._polls.add()
        if batches:
            self._tasks.add_batches(batches)

    def _poll_timeout_ms(self) -> float:
        if self._worked or self._calls.waiting or self._stopping.is_set():
            return 0
        if self.state is not ThreadState.RUNNING:
            return 0 if self._restorer.busy else _JOINING_POLL_MS
        timeout_ms = float(self._context.config.poll_ms)
        if self._tasks.commit_needed:
            timeout_ms = min(timeout_ms, self._ms_to_commit())
        punctuation_ms = self._tasks.next_punctuation_ms()
        if punctuation_ms is not None:
            timeout_ms = min(timeout_ms, punctuation_ms - self._clock.now_ms())
        return max(0.0, timeout_ms)

    def _work(self) -> None:
        """Process, punctuate and commit until nothing is left or the round's time is over."""
        clock = self._clock
        round_end = Deadline(clock, 2 * _ROUND_MS)
        self._worked = False
        while not self._stopping.is_set():
            started_ms = clock.monotonic_ms()
            processed = self._tasks.process(self._round_records, clock.now_ms())
            self._tasks.punctuate(clock.now_ms())
            took_ms = clock.monotonic_ms() - started_ms
            self._maybe_commit()
            if not processed:
                return
            self._worked = True
            self._records += processed
            if took_ms > _ROUND_MS:
                self._round_records = max(1, self._round_records // 2)
            elif took_ms < _ROUND_MS / 2:
                self._round_records = min(2 * self._round_records, _ROUND_RECORDS_MAX)
            if round_end.expired():
                return

    def _maybe_commit(self) -> None:
        config, tasks = self._context.config, self._tasks
        limit = config.statestore_uncommitted_max_bytes // config.num_stream_threads
        asked = self._commit_asked.is_set()
        due = self._ms_to_commit() <= 0 or tasks.commit_requested or tasks.uncommitted_bytes >= limit
        # A commit is what shows that trouble is over.
        due = due or self._trouble.lasts
        if not (asked or due):
            return
        if asked or tasks.commit_needed:
            if not self._clients.member.can_commit():
                return
            self._commit_asked.clear()
            tasks.commit()
            self._trouble.over()
            self._commits.add()
            self._cache.resize(self._cache_bytes)
        self._last_commit_ms = self._clock.monotonic_ms()
        tasks.upkeep()

    def _ms_to_commit(self) -> float:
        return self._last_commit_ms + self._commit_interval_ms - self._clock.monotonic_ms()

    # Trouble

    def _rejoin(self) -> None:
        self._events.clear()
        self._set_state(ThreadState.PARTITIONS_REVOKED)
        self._tasks.lose_all()
        self._clients.member.request_rejoin()

    def _retry(self, error: StreamsError, *, halfway: bool) -> None:
        """Try again until ``task_timeout_ms`` is over. What stopped in the middle of a record starts again from the
        last commit."""
        if self._trouble.failed(until_commit=halfway or self._tasks.commit_needed):
            raise error
        if halfway:
            self._set_state(ThreadState.PARTITIONS_ASSIGNED)
            self._tasks.revive()
        self._stopping.wait(_RETRY_PAUSE_MS / 1000)

    # What others see

    def _set_state(self, state: ThreadState) -> None:
        old = self.state
        self.state = check_transition(f"thread {self.name}", THREAD_SUCCESSORS, old, state)
        log.debug("[%s] %s -> %s", self.name, old.name, state.name)
        self._owner.thread_changed(self, old, state)

    def _publish_now_and_then(self) -> None:
        now = self._clock.monotonic_ms()
        if now - self._last_snapshot_ms >= _SNAPSHOT_INTERVAL_MS:
            self._last_snapshot_ms = now
            self._publish()
            self._summary.tell(self._records, int(self._commits.value), len(self.snapshot.tasks))
            self._owner.housekeeping()

    def _publish(self) -> None:
        if not hasattr(self, "_tasks"):
            return
        self.snapshot = ThreadProgress(
            self.name,
            self.state,
            self._records,
            task_progress(self._tasks),
            tuple(restore_progress(restore) for restore in self._restorer.progress()),
            tuple(sorted(self._tasks.paused)),
        )


def _listed(tasks: Any) -> str:
    return ", ".join(str(task) for task in sorted(tasks)) or "none"
