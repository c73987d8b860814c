"""The rounds of a stream thread: membership, restore, poll, process, punctuate, commit; and the handling of errors.

The rounds use the objects that the thread has opened. ``stream_thread`` opens them, and starts and ends the thread.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pystreams.broker.port import Assigned, Lost, MemberEvent
from pystreams.clock import Deadline, thread_cpu_ms
from pystreams.errors import (
    OffsetOutOfRangeError,
    StreamsError,
    TopologyError,
    TransactionEndedError,
)
from pystreams.ids import TaskId, TopicPartition
from pystreams.plural import plural
from pystreams.runtime.group.group_wait import GroupWait
from pystreams.runtime.group.membership_data import (
    AssignmentInfo,
    decode_assignment_info,
    unpack_tasks,
    whereabouts_of,
)
from pystreams.runtime.group.refusal import refusal
from pystreams.runtime.recovery.error_answers import ErrorAnswers
from pystreams.runtime.recovery.rivals import Rivals
from pystreams.runtime.recovery.stall_watch import StallWatch
from pystreams.runtime.recovery.trouble import Trouble
from pystreams.runtime.restoring.load import BusyTime
from pystreams.runtime.restoring.restorer import Restorer
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.stopwatch import Stopwatch
from pystreams.runtime.tasks.task_manager import TaskManager, ThreadClients
from pystreams.runtime.threads.activity import GROUP, POLL, PROCESS, ActivityNotes
from pystreams.runtime.threads.follow_up import FollowUp
from pystreams.runtime.threads.requests import Requests
from pystreams.runtime.threads.thread_metrics import ThreadMetrics
from pystreams.runtime.threads.thread_state import ThreadState
from pystreams.runtime.threads.thread_summary import ThreadSummary
from pystreams.state.cache.thread_cache import ThreadCache

log = logging.getLogger(__name__)

#: The time that one step of processing should take, so that membership, commits and stops never wait long.
_STEP_MS = 50.0
#: Records a task may process in one round, at most.
_ROUND_RECORDS_MAX = 4_096
#: How long to wait for records while a rebalance is under way.
_JOINING_POLL_MS = 10.0
_RETRY_PAUSE_MS = 100.0
#: The call of another thread, such as a read of a store, is usually followed by others. For this time after a call, the
#: thread looks often for the next one.
_ASKED_FOR_MS = 1_000.0
#: During that time, an idle thread looks for calls at this interval.
_ASKED_POLL_MS = 2.0
#: During that time, a busy thread makes steps of about this length, because it answers calls between two steps.
_ASKED_STEP_MS = 10.0
#: While others wait for commits, the thread commits at this interval, but spends at most this share of its time on it.
_AWAITED_COMMIT_MS, _AWAITED_COMMIT_SHARE = 200.0, 0.1
_SNAPSHOT_INTERVAL_MS = 100.0

#: Handles an error; its second argument is the task that was at work, or None.
Answer = Callable[[StreamsError, ActiveTask | None], None]


class RoundsOwner(Protocol):
    """The thread, as its rounds see it."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> ThreadState: ...
    @property
    def is_paused(self) -> bool:
        """Whether the thread must process no records and call no punctuators."""
        ...

    def enter(self, state: ThreadState) -> None:
        """Go over to a state."""
        ...

    def joined(self, member_id: str) -> None:
        """The group knows this thread as a member."""
        ...

    def publish(self) -> None:
        """Make the present progress of the tasks visible to other threads."""
        ...

    def application_shutdown(self) -> None:
        """A member of the group asked the whole application to stop."""
        ...

    def housekeeping(self) -> None:
        """Called now and then."""
        ...


@dataclass(frozen=True, slots=True)
class ThreadParts:
    """The objects that a thread has opened. Only that thread uses them."""

    clients: ThreadClients
    cache: ThreadCache
    restorer: Restorer
    tasks: TaskManager
    stopwatch: Stopwatch
    requests: Requests[TaskManager]
    rivals: Rivals
    activity: ActivityNotes


class Rounds:
    """The loop of a thread: created once the thread has opened everything that it needs."""

    def __init__(
        self, owner: RoundsOwner, context: ClientContext, parts: ThreadParts, group_wait: GroupWait | None
    ) -> None:
        """``group_wait`` logs why there are no tasks yet; only one thread of a client has it."""
        self.tasks = parts.tasks
        self.restorer = parts.restorer
        self.clients = parts.clients
        #: The data that came with the last assignment.
        self.assignment_info = AssignmentInfo()
        #: When to ask for the next rebalance.
        self._follow_up: FollowUp | None = None
        #: How many records were processed.
        self.records = 0
        #: How many of them came from internal topics.
        self.internal_records = 0
        #: When the present round began (monotonic).
        self.began_ms = context.clock.monotonic_ms()
        self.activity = parts.activity
        self._owner = owner
        self._name = owner.name
        self._context = context
        self._cache = parts.cache
        self._requests = parts.requests
        self._rivals = parts.rivals
        self._stopwatch = parts.stopwatch
        self._group_wait = group_wait
        self._clock = context.clock
        #: Events of the membership that are not carried out yet, because an earlier try failed.
        self._events: deque[MemberEvent] = deque()
        #: The id under which the group knows this thread.
        self._member_id = ""
        self._round_records = 1
        self._worked = False
        self._busy = BusyTime()
        self._last_commit_ms = self._clock.monotonic_ms()
        #: How long the last commit took.
        self._commit_took_ms = 0.0
        self._last_snapshot_ms = 0.0
        #: When a call of another thread was last answered.
        self._asked_ms = -_ASKED_FOR_MS
        config = context.config
        self._trouble = Trouble(self._clock, config.task_timeout_ms)
        self._commit_interval_ms = config.effective_commit_interval_ms(
            transactional=context.broker.transactional
        )
        self._stalls = StallWatch(
            parts.clients.consumer, context.admin, self._clock, config.stall_timeout_ms, owner.name
        )
        self._summary = ThreadSummary(owner.name, config.log_summary_interval_ms, self._clock)
        self._metrics = ThreadMetrics(context.metrics, owner.name)
        self._answers: ErrorAnswers[Answer] = ErrorAnswers(
            {"retry": self._retry, "redo": self._redo, "wipe": self._wipe, "rejoin": self._rejoin}
        )

    def go_round(self) -> None:
        """Run one round, and handle an error as its ``action`` says. Raises an error that cannot be handled here."""
        self.began_ms = self._clock.monotonic_ms()
        self._stopwatch.begin_round(self.began_ms)
        try:
            self._round()
            self._trouble.succeeded(restoring=not self.tasks.settled, caught_up=self._caught_up)
        except StreamsError as error:
            answer = self._answers.to(error)
            working, self.tasks.working = self.tasks.working, None
            answer(error, working)

    # The round

    def _round(self) -> None:
        self.activity.begin(GROUP)
        self._answer_calls()
        # First, because an open transaction of this thread would block the present owners of its former tasks.
        self.clients.producer.settle()
        # The member returns each assignment only once, so it must be carried out completely before the next poll.
        if not self._events:
            self._events.extend(self._poll_member())
        if self._group_wait is not None:
            self._group_wait.warn_if_long()
        while self._events:
            self._apply(self._events[0])
            self._events.popleft()
        self._fill_tasks()
        self._poll()
        self._work()
        self._publish_now_and_then()

    def _poll_member(self) -> list[MemberEvent]:
        member = self.clients.member
        if self._requests.look.is_set():
            self._requests.look.clear()
            member.look()
        events = member.poll()
        if member.member_id not in ("", self._member_id):
            self._member_id = member.member_id
            self._owner.joined(self._member_id)
        return events

    def _answer_calls(self) -> None:
        if self._requests.calls.waiting:
            self._asked_ms = self._clock.monotonic_ms()
            with self._cache.without_loading():
                self._requests.calls.answer(self.tasks)

    def _asked_lately(self) -> bool:
        return self._clock.monotonic_ms() - self._asked_ms < _ASKED_FOR_MS

    def _apply(self, event: MemberEvent) -> None:
        match event:
            case Lost(reason):
                log.warning("[%s] lost the membership: %s", self._name, reason)
                self._lose_all()
            case Assigned(generation, partitions, user_data):
                self._group_wait = None
                info = decode_assignment_info(user_data)
                if info.error:
                    where = f"application {self._context.built.application_id}, {self._name}"
                    raise refusal(info, self._context.in_use, where)
                self.assignment_info = info
                self._hear(generation, info)
                self._follow_up = FollowUp(
                    info, self._context.config.acceptable_recovery_lag, self._clock, self._follow_up
                )
                if info.shutdown:
                    self._owner.application_shutdown()
                    # Take on no more tasks: one of them may be the task that made another member fail.
                    partitions = tuple(sorted(self._held() & set(partitions)))
                self._take_on(generation, partitions, info)

    def subscribes(self) -> None:
        """The thread sends its subscription."""
        if self._follow_up is not None:
            self._follow_up.subscribes(self.tasks.standby_lags)

    def _hear(self, generation: int, info: AssignmentInfo) -> None:
        """Note for all threads where all tasks are, if this thread has received it. Only queries use this information:
        without it, they may name former owners."""
        try:
            whereabouts = whereabouts_of(info)
        except TopologyError as error:
            log.warning(
                "[%s] the group has said where all tasks are, but it cannot be read, so that queries may be referred to"
                " processes that had a task before: %s",
                self._name,
                error,
            )
            return
        if whereabouts.threads:
            self._context.in_group.heard(generation, whereabouts)

    def _lose_all(self) -> None:
        self._context.in_group.forget_generation()
        self._owner.enter(ThreadState.PARTITIONS_REVOKED)
        self.tasks.lose_all()

    def _held(self) -> set[TopicPartition]:
        """The inputs of the tasks that this thread has."""
        return {partition for task in self.tasks.tasks() for partition in task.inputs}

    def _take_on(self, generation: int, partitions: tuple[TopicPartition, ...], info: AssignmentInfo) -> None:
        self._metrics.assigned(self._clock.monotonic_ms())
        before = self.tasks.task_ids()
        if not before:
            self._context.hand_over.check()
        if before and not self._held() <= set(partitions):
            self._owner.enter(ThreadState.PARTITIONS_REVOKED)
        self._owner.enter(ThreadState.PARTITIONS_ASSIGNED)
        self.tasks.begin_generation(generation)
        self.tasks.assign(partitions, self._standbys(info, frozenset(partitions)))
        self._metrics.carried_out()
        now, standbys = self.tasks.task_ids(), self.tasks.standby_ids()
        log.info(
            "[%s] generation %d: tasks %s (new %s, gone %s)%s",
            self._name,
            generation,
            _listed(now),
            _listed(set(now) - set(before)),
            _listed(set(before) - set(now)),
            f", standbys {_listed(standbys)}" if standbys else "",
        )
        # With at least as many tasks as threads, it waits for tasks that others have still to give up.
        if not now and info.members > info.tasks:
            log.info(
                "[%s] has nothing to do: by the partitions of its input topics the application's work is divided into"
                " %d %s, there are %d threads, and a task runs in one thread at a time",
                self._name,
                info.tasks,
                plural(info.tasks, "task"),
                info.members,
            )

    def _standbys(self, info: AssignmentInfo, partitions: frozenset[TopicPartition]) -> frozenset[TaskId]:
        """The standby tasks of an assignment, except two kinds. Some have become active meanwhile: a standby continues
        until the former owner of its task has given up the partitions, which then come with a later event of the same
        assignment. Others read partitions that their topics got after this client had started; the leader may know
        them already."""
        inputs = self._context.inputs
        return frozenset(
            task for task in unpack_tasks(info.standbys) if task in inputs and not inputs[task] <= partitions
        )

    def _fill_tasks(self) -> None:
        self.tasks.open_created()
        self.tasks.take_restored()

    def _poll(self) -> None:
        if self._owner.state is ThreadState.PARTITIONS_ASSIGNED and self.tasks.settled:
            self._owner.enter(ThreadState.RUNNING)
            self._metrics.settled(self._clock.monotonic_ms())
        began_ms = self._clock.monotonic_ms()
        self.activity.begin(POLL)
        try:
            batches = self.clients.consumer.poll(self._poll_timeout_ms())
        except OffsetOutOfRangeError as error:
            self.tasks.check_positions(error)
            return
        ended_ms = self._clock.monotonic_ms()
        self.activity.polled(ended_ms)
        self._metrics.polled(batches, began_ms, ended_ms)
        if batches:
            self.tasks.add_batches(batches)
        self._stalls.polled(self.tasks.reads)

    def _poll_timeout_ms(self) -> float:
        if self._worked or self._requests.calls.waiting or self._requests.stop.is_set():
            return 0
        if self._owner.state is not ThreadState.RUNNING:
            return _JOINING_POLL_MS
        timeout_ms = float(self._context.config.poll_ms)
        if self._asked_lately():
            timeout_ms = min(timeout_ms, _ASKED_POLL_MS)
        if self.tasks.commit_often:
            timeout_ms = min(timeout_ms, _AWAITED_COMMIT_MS)
        if self.tasks.commit_needed or self._requests.awaited_commit.is_set():
            timeout_ms = min(timeout_ms, self._ms_to_commit())
        punctuation_ms = None if self._owner.is_paused else self.tasks.next_punctuation_ms()
        if punctuation_ms is not None:
            timeout_ms = min(timeout_ms, punctuation_ms - self._clock.now_ms())
        return max(0.0, timeout_ms)

    def _work(self) -> None:
        """Process, punctuate and commit until nothing is left or the round's time is over."""
        clock = self._clock
        round_end = Deadline(clock, 2 * _STEP_MS)
        self._worked = False
        if self._owner.is_paused:
            self._maybe_commit()
            return
        while not self._requests.stop.is_set():
            self.activity.begin(PROCESS)
            started_ms, started_cpu_ms = clock.monotonic_ms(), thread_cpu_ms()
            processed = self.tasks.process(self._round_records, clock.now_ms())
            processed_ms = clock.monotonic_ms()
            if processed:
                self._metrics.processed(processed, started_ms, processed_ms)
            if punctuated := self.tasks.punctuate(clock.now_ms()):
                self._metrics.punctuated(punctuated, processed_ms, clock.monotonic_ms())
            took_ms = clock.monotonic_ms() - started_ms
            self._busy.processed(took_ms, thread_cpu_ms() - started_cpu_ms)
            self._maybe_commit()
            if not processed:
                return
            self._answer_calls()
            self._worked = True
            self.records += processed
            self.internal_records += self.tasks.internal_processed
            step_ms = _ASKED_STEP_MS if self._asked_lately() else _STEP_MS
            if took_ms > step_ms:
                self._round_records = max(1, self._round_records // 2)
            elif took_ms < step_ms / 2:
                self._round_records = min(2 * self._round_records, _ROUND_RECORDS_MAX)
            if round_end.expired():
                return

    def _maybe_commit(self) -> None:
        config, tasks = self._context.config, self.tasks
        limit = config.statestore_uncommitted_max_bytes // config.num_stream_threads
        in_time = self._ms_to_commit() <= 0
        asked = self._requests.commit.is_set() or (in_time and self._requests.awaited_commit.is_set())
        due = in_time or tasks.commit_requested or tasks.uncommitted_bytes >= limit
        # Only a commit proves that the trouble is over.
        due = due or self._trouble.lasts
        if not (asked or due):
            return
        if asked or tasks.commit_needed:
            member = self.clients.member
            if not member.can_commit() or self.clients.producer.postpones(member):
                return
            self._requests.commit.clear()
            self._requests.awaited_commit.clear()
            started_ms = self._clock.monotonic_ms()
            tasks.commit()
            ended_ms = self._clock.monotonic_ms()
            self._commit_took_ms = ended_ms - started_ms
            self._trouble.over()
            self._metrics.after_commit(started_ms, ended_ms)
            self._cache.resize(self._requests.cache_bytes)
        self._last_commit_ms = self._clock.monotonic_ms()
        tasks.upkeep()

    def _ms_to_commit(self) -> float:
        interval_ms = float(self._commit_interval_ms)
        if self.tasks.commit_often or self._requests.awaited_commit.is_set():
            awaited_ms = max(_AWAITED_COMMIT_MS, self._commit_took_ms / _AWAITED_COMMIT_SHARE)
            interval_ms = min(interval_ms, awaited_ms)
        return self._last_commit_ms + interval_ms - self._clock.monotonic_ms()

    def _caught_up(self) -> bool:
        """True if no work is left. A thread that is joining again does not know its tasks yet, so it is False then."""
        return self._owner.state is ThreadState.RUNNING and self.tasks.caught_up()

    # Handling of errors

    def _rejoin(self, error: StreamsError, working: ActiveTask | None) -> None:
        if isinstance(error, TransactionEndedError):
            # Joining again does not help if each transaction takes too long, or if two processes have the same id.
            self._trouble.note(error, until_commit=True)
            self._rivals.look(self.clients.member)
        self._goes_on("joins the group again", error)
        self._events.clear()
        self._lose_all()
        self.clients.member.request_rejoin()

    def _wipe(self, error: StreamsError, working: ActiveTask | None) -> None:
        if working is None:
            raise error
        self._goes_on("restores the stores of a task from the beginning", error)
        self._owner.enter(ThreadState.PARTITIONS_ASSIGNED)
        self.tasks.wipe({working.task_id: error})

    def _retry(self, error: StreamsError, working: ActiveTask | None) -> None:
        """Pause and try again. A task that failed in the middle of a record starts again from its last commit."""
        if working is None:
            self._trouble.note(error, until_commit=self.tasks.commit_needed)
            self._goes_on("tries again", error)
            self._pause()
        else:
            self._redo(error, working)

    def _redo(self, error: StreamsError, working: ActiveTask | None) -> None:
        self._trouble.note(error, until_commit=True)
        self._goes_on("does its work since the last commit again", error)
        self._owner.enter(ThreadState.PARTITIONS_ASSIGNED)
        self.tasks.revive()
        self._pause()

    def _goes_on(self, how: str, error: StreamsError) -> None:
        log.warning("[%s] %s: %s", self._name, how, error)

    def _pause(self) -> None:
        self._requests.stop.wait(_RETRY_PAUSE_MS / 1000)

    # Reports to other threads

    def _publish_now_and_then(self) -> None:
        now = self._clock.monotonic_ms()
        elapsed_ms = now - self._last_snapshot_ms
        if elapsed_ms >= _SNAPSHOT_INTERVAL_MS:
            self._context.load.processes(self._name, self._busy.share(elapsed_ms))
            self._last_snapshot_ms = now
            self._owner.publish()
            self.tasks.take_snapshots()
            if self._follow_up is not None and self._follow_up.due(self.tasks.standby_lags):
                self.clients.member.request_rejoin()
            self._summary.log_if_due(self.records, self._metrics.commits, len(self.tasks.tasks()))
            self._owner.housekeeping()


def _listed(tasks: Any) -> str:
    return ", ".join(str(task) for task in sorted(tasks)) or "none"
