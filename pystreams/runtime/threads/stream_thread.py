"""A stream thread: opens its resources, runs rounds until it is stopped or fails, and releases everything.

A stream thread owns its broker clients, its cache and its tasks; no other thread uses them. Other threads send it
requests (for a commit, for a read of a store), which it serves between two steps of its work.
"""

from __future__ import annotations

import logging
import platform
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

from pystreams.broker.group_application import GroupApplication
from pystreams.distribution import __version__
from pystreams.errors import StreamsError, TaskMigratedError
from pystreams.ids import MemberName, TaskId
from pystreams.metrics import Sample
from pystreams.runtime.group.broker_assignor import BrokerAssignor
from pystreams.runtime.group.group_assignor import GroupAssignor
from pystreams.runtime.group.group_wait import GroupWait
from pystreams.runtime.group.log_facts import LogFacts
from pystreams.runtime.group.membership_data import (
    AssignmentInfo,
    Subscription,
    encode,
    pack_topology,
)
from pystreams.runtime.group.own_assignor import own_assignor
from pystreams.runtime.group.situation import AssignorSettings
from pystreams.runtime.group.subscribing import OfProcess, OwnTasks, subscription_now
from pystreams.runtime.recovery.rivals import Rivals
from pystreams.runtime.recovery.stall_watch import StallWatch
from pystreams.runtime.restoring.restore_thread import RestoreThread
from pystreams.runtime.restoring.restorer import Restorer
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.stopwatch import Stopwatch
from pystreams.runtime.tasks.store_metrics import store_samples
from pystreams.runtime.tasks.task_manager import TaskManager, ThreadClients
from pystreams.runtime.tasks.task_opening import TaskOpener
from pystreams.runtime.threads.activity import NOTHING, Activity, ActivityNotes
from pystreams.runtime.threads.progress import (
    ThreadProgress,
    restore_progress,
    standby_progress,
    task_progress,
)
from pystreams.runtime.threads.requests import Requests
from pystreams.runtime.threads.rounds import Rounds, ThreadParts
from pystreams.runtime.threads.thread_end import ask_all_to_stop, close_all, placed
from pystreams.runtime.threads.thread_state import THREAD_SUCCESSORS, ThreadState
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.task_assignor import TaskInfo
from pystreams.transitions import check_transition

log = logging.getLogger(__name__)

T = TypeVar("T")


class ThreadOwner(Protocol):
    """The client, as its threads see it. Called from the threads."""

    @property
    def is_paused(self) -> bool: ...

    def thread_changed(self, thread: StreamThread, old: ThreadState, new: ThreadState) -> None: ...

    def thread_failed(self, thread: StreamThread, error: BaseException) -> bool:
        """The thread is about to end because of ``error``. Returns whether it must ask the whole group to stop."""
        ...

    def thread_ended(self, thread: StreamThread) -> None:
        """The thread has ended and has released all its resources."""
        ...

    def application_shutdown(self) -> None:
        """A member of the group asked the whole application to stop."""
        ...

    def housekeeping(self) -> None:
        """Called periodically by every thread."""
        ...


class StreamThread:
    """Works on the tasks that the group assigns to it, until it is stopped or fails."""

    def __init__(
        self,
        name: str,
        index: int,
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
        self._transactional_id = context.transactional_id(index)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._requests: Requests[TaskManager] = Requests(name, cache_bytes)
        #: Whether to leave the group at the end; None: a static member stays, another one leaves.
        self._leave: bool | None = None
        self._topology = pack_topology(context.in_use.now.topology)
        #: None until everything is open.
        self._rounds: Rounds | None = None

    # From other threads

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, leave: bool | None = None) -> None:
        """End after the record at work, with a commit. Returns at once. ``leave``: whether to leave the group (see
        ``Member.close``)."""
        if self._leave is None:
            self._leave = leave
        self._requests.stop.set()
        if self._rounds is not None:
            self._rounds.tasks.interrupt()

    def request_commit(self) -> None:
        """Commit in this round or the next."""
        self._requests.commit.set()

    def request_commit_soon(self) -> None:
        """Commit soon, because a reader waits for it. However many such requests there are, these commits take only a
        small share of the thread's time."""
        self._requests.awaited_commit.set()

    def look(self) -> None:
        """Ask the group soon whether it rebalances."""
        self._requests.look.set()

    def join(self, timeout_ms: float | None = None) -> bool:
        """Wait for the end of the thread. Returns whether it has ended."""
        if self._thread.is_alive() and not self.is_current:
            self._thread.join(None if timeout_ms is None else timeout_ms / 1000)
        return not self._thread.is_alive()

    @property
    def is_current(self) -> bool:
        """True if the calling thread is this one."""
        return self._thread is threading.current_thread()

    @property
    def alive(self) -> bool:
        return self.state not in (ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD)

    @property
    def round_ms(self) -> float:
        """For how long the thread has been in its present round, which takes a fraction of a second when all is well;
        0 before the first round and after the last."""
        rounds = self._rounds
        return (
            0.0 if rounds is None or not self.alive else self._context.clock.monotonic_ms() - rounds.began_ms
        )

    @property
    def activity(self) -> Activity:
        """The current activity of the thread."""
        rounds = self._rounds
        if rounds is None or self.state is ThreadState.DEAD:
            return Activity()
        working = rounds.tasks.working
        return rounds.activity.now(None if working is None else str(working.task_id))

    def call(self, function: Callable[[TaskManager], T]) -> Future[T]:
        """Have ``function`` called by the thread between two steps of its work. The future fails if the thread ends
        before."""
        return self._requests.calls.put(function)

    @property
    def tasks(self) -> TaskManager | None:
        """The tasks of the thread, of which other threads may only call the methods that say so; None: the thread has
        not begun its rounds."""
        return None if self._rounds is None else self._rounds.tasks

    def store_samples(self) -> list[Sample]:
        """The metrics of its stores. Any thread may call this at any time."""
        tasks = self.tasks
        return [] if tasks is None or not self.alive else store_samples(tasks, self.name)

    def resize_cache(self, cache_bytes: int) -> None:
        """Give the thread another share of the cache budget. It takes effect with a commit, because the entries that no
        longer fit may be dirty."""
        self._requests.cache_bytes = cache_bytes
        self.request_commit()

    # Life

    def _run(self) -> None:
        closing: list[Callable[[], None]] = []
        try:
            rounds = self._rounds = self._open(closing)
            while not self._requests.stop.is_set():
                rounds.go_round()
            self._begin_to_end()
            self._close_tasks(rounds.tasks)
        except BaseException as error:  # noqa: BLE001 - whatever ends a thread is its owner's to judge
            self._fail(error)
        finally:
            self._release(closing)

    def _begin_to_end(self) -> None:
        self.enter(ThreadState.PENDING_SHUTDOWN)
        if self._rounds is not None:
            # The rounds are over; only the last commit follows.
            self._rounds.activity.begin(NOTHING)

    def _close_tasks(self, tasks: TaskManager) -> None:
        try:
            tasks.close(commit=True)
        except TaskMigratedError as error:
            log.warning("[%s] stopped without a last commit: %s", self.name, error)

    def _open(self, closing: list[Callable[[], None]]) -> Rounds:
        context, broker = self._context, self._context.broker
        self.enter(ThreadState.STARTING)
        group_wait = self._group_wait()
        consumer = broker.consumer(f"{self.name}-consumer")
        closing.append(consumer.close)
        producer = broker.producer(
            f"{self.name}-producer", self._transactional_id, context.transaction_content
        )
        closing.append(producer.close)
        member = broker.member(
            self.name,
            context.built.application_id,
            sorted({partition.topic for inputs in context.inputs.values() for partition in inputs}),
            self._subscription,
            self._group_assignor(),
            context.instance_id(self.index),
            self._transactional_id,
            self._application(),
        )
        closing.append(lambda: member.close(leave=self._leave))
        clients, cache = ThreadClients(member, consumer, producer), ThreadCache(self._requests.cache_bytes)
        stopwatch = Stopwatch(self.name, context.clock, context.config.stall_timeout_ms)
        closing.append(stopwatch.close)
        restorer = self._start_restoring(closing, stopwatch)
        opener = TaskOpener(context, consumer, producer, self.name)
        activity = ActivityNotes(context.clock)
        tasks = TaskManager(
            context, clients, opener, restorer, stopwatch, cache, activity.committing, self.name
        )
        parts = ThreadParts(
            clients, cache, restorer, tasks, stopwatch, self._requests, self._make_rivals(), activity
        )
        return Rounds(self, context, parts, group_wait)

    def _make_rivals(self) -> Rivals:
        context = self._context
        return Rivals(
            context.built.application_id,
            self._transactional_id,
            context.directory.process_file,
            context.admin,
            context.clock,
            context.config.session_timeout_ms,
            context.in_group.member_ids,
        )

    def _start_restoring(self, closing: list[Callable[[], None]], stopwatch: Stopwatch) -> Restorer:
        """Start the restoring thread, which has a consumer of its own."""
        context = self._context
        consumer = context.broker.consumer(f"{self.name}-restore-consumer", "restore")
        name, stall_timeout_ms = f"{self.name}-restore", context.config.stall_timeout_ms
        restorer = Restorer(
            consumer,
            context.admin,
            context.clock,
            context.restore_listener,
            context.commits,
            StallWatch(consumer, context.admin, context.clock, stall_timeout_ms, name),
            stopwatch.watch_also(name),
        )
        patience_ms = context.config.task_timeout_ms
        thread = RestoreThread(name, restorer, context.load, context.clock, patience_ms, consumer.close)
        thread.start()
        closing.append(thread.close)
        return restorer

    def _group_wait(self) -> GroupWait | None:
        """The watch over a wait for the first tasks; only for one thread of the client, which logs for all."""
        if self.index != 1:
            return None
        context = self._context
        group, patience_ms = context.built.application_id, context.config.session_timeout_ms
        return GroupWait(context.admin, group, patience_ms, context.clock)

    def _application(self) -> GroupApplication | None:
        """The description of the application for a broker that assigns the tasks; None: the group's assignor does."""
        context, config = self._context, self._context.config
        if config.group_protocol == "classic":
            return None
        assignor = BrokerAssignor(
            context.built, context.inputs, context.stateful, context.partition_count, context.process_id
        )
        return assignor.application(
            self.name, config, lambda: self.shutdown_requested, context.in_use.difference_from
        )

    def _group_assignor(self) -> GroupAssignor:
        context, config = self._context, self._context.config
        changelogs, sources = context.changelogs(), context.source_changelogs()
        return GroupAssignor(
            context.inputs,
            context.stateful,
            context.built.fingerprint,
            self._topology,
            {
                task: changelogs.get(task, frozenset()) | sources.get(task, frozenset())
                for task in changelogs | sources
            },
            AssignorSettings.of(config),
            LogFacts(context.admin, context.built.application_id, changelogs, sources),
            config.probing_rebalance_interval_ms,
            own_assignor(config.task_assignor_class, self._task_infos(), config),
        )

    def _task_infos(self) -> dict[TaskId, TaskInfo]:
        context = self._context
        infos = {}
        for task, inputs in context.inputs.items():
            sub = context.subtopology(task)
            stores = tuple(spec.name for spec in sub.stores)
            infos[task] = TaskInfo(task, inputs, stores, bool(sub.changelogs or sub.source_changelogs))
        return infos

    def _subscription(self) -> bytes:
        context, rounds = self._context, self._rounds
        base = Subscription(
            fingerprint=context.built.fingerprint,
            process_id=context.process_id,
            thread=self.name,
            worker=context.worker.number,
            tags=dict(context.config.client_tags),
            rack=context.config.client_rack,
            shutdown=self.shutdown_requested,
            endpoint=context.config.application_server or "",
            pystreams=__version__,
            python=platform.python_version(),
        )
        received, own = AssignmentInfo(), OwnTasks()
        if rounds is not None:
            rounds.subscribes()
            received, tasks = rounds.assignment_info, rounds.tasks
            own = OwnTasks(
                frozenset(tasks.standby_ids()), frozenset(tasks.restoring_ids()), dict(tasks.reached())
            )
        speaks = context.in_group.speaks(self.name)
        of_process = OfProcess(context.local_state(), self._topology) if speaks else OfProcess()
        return encode(subscription_now(base, received, own, of_process, len(context.inputs)))

    def _fail(self, error: BaseException) -> None:
        rounds = self._rounds
        working = None if rounds is None else rounds.tasks.working
        error = placed(error, None if working is None else working.task_id, self.name)
        self.error = error
        if self.state is not ThreadState.PENDING_SHUTDOWN:
            self._begin_to_end()
        if rounds is not None:
            rounds.tasks.working = None
            try:
                rounds.tasks.close(commit=False)
            except StreamsError:
                log.exception("[%s] a failure while closing after another", self.name)
        if self._owner.thread_failed(self, error) and rounds is not None:
            self.shutdown_requested = True
            ask_all_to_stop(rounds.clients.member, self._context.clock, self.name)

    def _release(self, closing: list[Callable[[], None]]) -> None:
        self._context.in_group.leave(self.name)
        # The member is closed first: it leaves the group while everything that it works with is still open.
        close_all(closing, self.name)
        self._context.load.ends(self.name)
        self.enter(ThreadState.DEAD)
        self.publish()
        self._requests.calls.refuse()
        self._owner.thread_ended(self)

    # Called by the rounds

    @property
    def is_paused(self) -> bool:
        """Whether the client is paused."""
        return self._owner.is_paused

    def joined(self, member_id: str) -> None:
        """The group knows this thread as a member."""
        self._context.in_group.joined(self.name, member_id)
        if self._context.neighbours is not None:
            self._context.neighbours.note(MemberName(member_id, self._context.instance_id(self.index)))

    def enter(self, state: ThreadState) -> None:
        """Go over to a state."""
        old = self.state
        self.state = check_transition(f"thread {self.name}", THREAD_SUCCESSORS, old, state)
        log.debug("[%s] %s -> %s", self.name, old.name, state.name)
        self._owner.thread_changed(self, old, state)

    def publish(self) -> None:
        """Make the present progress of the tasks visible to other threads."""
        rounds = self._rounds
        if rounds is None:
            return
        self.snapshot = ThreadProgress(
            self.name,
            self.state,
            rounds.records,
            task_progress(rounds.tasks),
            tuple(restore_progress(restore) for restore in rounds.restorer.progress()),
            tuple(sorted(rounds.tasks.paused)),
            standby_progress(rounds.tasks),
            rounds.internal_records,
        )

    def application_shutdown(self) -> None:
        """A member of the group asked the whole application to stop."""
        self._owner.application_shutdown()

    def housekeeping(self) -> None:
        """Called periodically by the rounds."""
        self._owner.housekeeping()
