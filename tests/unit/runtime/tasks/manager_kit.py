"""A task manager with real tasks, stores and directories over a log in memory, and all that can happen to it.

What happens is an event: the name of a method of ``World`` with its arguments. A list of them is a story, which
``told`` plays from the beginning; after each event the invariants are checked.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from pystreams import App
from pystreams.clock import ManualClock
from pystreams.dsl.builder import build_topology
from pystreams.errors import (
    BrokerUnavailableError,
    StateCorruptedError,
    StateError,
    StateLockedError,
    StreamsError,
)
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.record import RecordBatch
from pystreams.runtime.recovery.hang_watch import WatchedRounds
from pystreams.runtime.recovery.stall_watch import StallWatch
from pystreams.runtime.restoring.load import Load
from pystreams.runtime.restoring.restore_thread import RestoreThread
from pystreams.runtime.restoring.restorer import Restorer
from pystreams.runtime.tasks import task_manager
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.tasks.standby_task import StandbyTask
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.tasks.task_manager import TaskManager, ThreadClients
from pystreams.runtime.tasks.task_opening import TaskOpener
from pystreams.runtime.threads.activity import ActivityNotes
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.disk.directory import OFFSETS_FILE, DirectoryLock, StateDirectory
from pystreams.state.disk.rocksdb_memory import shared_resources
from pystreams.state.task_stores import TaskStores
from tests.unit.runtime.tasks.log_kit import MemoryConsumer, MemoryLog, MemoryProducer

COUNTS_0, COUNTS_1, PLAIN = TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)
#: Two tasks with a store, and one without.
TASKS = (COUNTS_0, COUNTS_1, PLAIN)
INPUTS = {
    COUNTS_0: frozenset({TopicPartition("in", 0)}),
    COUNTS_1: frozenset({TopicPartition("in", 1)}),
    PLAIN: frozenset({TopicPartition("other", 0)}),
}
#: Methods that may fail for a moment.
FAULTS = (
    "fence",
    "committed",
    "beginning_offsets",
    "end_offsets",
    "main assign",
    "restore assign",
    "restore poll",
    "commit",
    "claim",
)
_KEYS = (b"a", b"b", b"c")

Event = tuple[Any, ...]


def application() -> App:
    app = App("app")
    app.stream("in", key=str, value=str).group_by_key().count(name="counts").to_stream().to("out")
    app.stream("other", key=str, value=str).map_values(str.upper).to("loud")
    return app


class FragileTask(ActiveTask):
    """Its state turns out to be corrupt while it is restored, if a test wants it."""

    breaks: Callable[[TaskId], bool]

    def restore(self, store: str, batch: RecordBatch) -> None:
        if self.breaks(self.task_id):
            raise StateCorruptedError("the changelog does not fit", where=str(self.task_id))
        super().restore(store, batch)


class Opener(TaskOpener):
    """Makes fragile tasks."""

    breaks: Callable[[TaskId], bool]

    def make(self, task_id: TaskId) -> ActiveTask:
        made = super().make(task_id)
        task = FragileTask(**{one.name: getattr(made, one.name) for one in fields(made) if one.init})
        task.breaks = self.breaks
        return task


class Stopwatch:
    """Nothing takes long."""

    def watch(self, working: object) -> None: ...

    def rest(self) -> None: ...


class World:
    def __init__(
        self,
        folder: Path,
        *,
        transactional: bool = True,
        log: MemoryLog | None = None,
        application: Callable[[], App] = application,
        inputs: Mapping[TaskId, frozenset[TopicPartition]] = INPUTS,
        cache_bytes: int = 1_000_000,
    ) -> None:
        """``log`` None: one that no other world uses."""
        self.log = log or MemoryLog(transactional=transactional)
        self.inputs = inputs
        self._application = application
        self._cache_bytes = cache_bytes
        self.directory = StateDirectory(folder, "app")
        self.clock = ManualClock()
        self.metrics = Metrics()
        #: What the group has assigned, as far as it was carried out, and what is still to be carried out.
        self.assigned: frozenset[TaskId] = frozenset()
        self.pending: frozenset[TaskId] | None = None
        #: The standbys of the next assignment, and those of the one that was carried out last.
        self.kept: frozenset[TaskId] = frozenset()
        self.followed: frozenset[TaskId] = frozenset()
        #: Directories that somebody else has locked.
        self.locks: dict[TaskId, DirectoryLock] = {}
        self.breaking: Counter[TaskId] = Counter()
        #: How many records came, by partition and key, and to the task without a store.
        self.fed: Counter[bytes] = Counter()
        self.fed_plain = 0
        self.may_count_twice = False
        task_manager.log.addFilter(self._note_warning)
        self._context = self._make_context()
        self._start()

    def _note_warning(self, warning: logging.LogRecord) -> bool:
        self.may_count_twice |= warning.msg.startswith("changelogs could not be corrected")
        return True

    def _make_context(self) -> ClientContext:
        app = self._application()
        log: Any = self.log
        nobody: Any = SimpleNamespace(attempt="", number=1)
        in_use: Any = SimpleNamespace(kept=True, beginning=None, now=SimpleNamespace(begun={}))
        in_use.processing = lambda: None
        return ClientContext(
            built=build_topology(app, app.config),
            config=app.config,
            broker=log,
            admin=log,
            clock=self.clock,
            metrics=self.metrics,
            directory=self.directory,
            cleanup=nobody,
            hand_over=nobody,
            in_use=in_use,
            resources=shared_resources(),
            process_id="process",
            worker=nobody,
            inputs=self.inputs,
            partition_count=lambda topic: 2,
        )

    def _start(self) -> None:
        log: Any = self.log
        self.consumer = MemoryConsumer(self.log, "main")
        self.restore_consumer = MemoryConsumer(self.log, "restore")
        self.producer = MemoryProducer(self.log)
        producer: Any = self.producer
        consumer: Any = self.consumer
        restore_consumer: Any = self.restore_consumer
        stopwatch: Any = Stopwatch()
        self.cache = ThreadCache(self._cache_bytes)
        opener = Opener(self._context, consumer, producer, "thread")
        opener.breaks = self._breaks
        self.restorer = Restorer(
            restore_consumer,
            log,
            self.clock,
            None,
            self._context.commits,
            StallWatch(restore_consumer, log, self.clock, 0, "restore"),
            WatchedRounds("restore", 0),
        )
        # It is not started: ``round`` lets it go its steps.
        self.restoring = RestoreThread(
            "restore", self.restorer, Load(), self.clock, 60_000, restore_consumer.close
        )
        clients = ThreadClients(log, consumer, producer)
        self.activity = ActivityNotes(self.clock)
        self.manager = TaskManager(
            self._context,
            clients,
            opener,
            self.restorer,
            stopwatch,
            self.cache,
            self.activity.committing,
            "thread",
        )

    def _breaks(self, task_id: TaskId) -> bool:
        broken = self.breaking[task_id] > 0
        self.breaking[task_id] -= broken
        return broken

    def tasks(self) -> dict[TaskId, ActiveTask]:
        return {task.task_id: task for task in self.manager._tasks}

    def standbys(self) -> dict[TaskId, StandbyTask]:
        return {task.task_id: task for task in self.manager._standbys}

    def status(self, task_id: TaskId) -> TaskStatus:
        return self.tasks()[task_id].status

    # Events of the group

    def assign(self, *task_ids: TaskId) -> None:
        """The group has another assignment."""
        self.pending = frozenset(task_ids)
        self._answered(self._carry_out)

    def _carry_out(self) -> None:
        if self.pending is not None:
            inputs = frozenset[TopicPartition]().union(*(self.inputs[one] for one in self.pending))
            self.manager.assign(inputs, self.kept)
            self.assigned, self.pending = self.pending, None
            self.followed = self.kept - self.assigned

    def keep(self, *task_ids: TaskId) -> None:
        """The next assignment has these standbys."""
        self.kept = frozenset(task_ids)

    def lose(self) -> None:
        """The membership is gone. At least once, changes that a failed commit has logged stay in the changelogs."""
        self.may_count_twice |= any(any(task.logged.values()) for task in self.manager.running)
        self.pending = None
        self._answered(self.manager.lose_all)
        self.assigned = frozenset(self.manager.task_ids())
        self.followed = frozenset(self.manager.standby_ids())

    # Events around it

    def lock(self, task_id: TaskId) -> None:
        """Somebody else takes a task's directory, if it is free."""
        with suppress(StateLockedError):
            self.locks[task_id] = DirectoryLock(self.directory.task_directory(task_id))

    def unlock(self, task_id: TaskId) -> None:
        """Somebody else gives a task's directory back."""
        if task_id in self.locks:
            self.locks.pop(task_id).release()

    def unlock_all(self) -> None:
        for task_id in list(self.locks):
            self.unlock(task_id)

    def fail(self, method: str, times: int) -> None:
        """A method of the log is not answered for some calls."""
        self.log.faults[method] = times

    def damage(self, task_id: TaskId) -> None:
        """Files of a task that is not open are damaged."""
        path = self.directory.task_directory(task_id) / OFFSETS_FILE
        holders = (self.tasks().get(task_id), self.standbys().get(task_id))
        if path.exists() and not any(task is not None and task.open_state is not None for task in holders):
            path.write_text("nonsense")

    def break_restore(self, task_id: TaskId) -> None:
        """What is restored of a task next shows that its state is corrupt."""
        self.breaking[task_id] = 1

    def feed(self, task_id: TaskId, records: int) -> None:
        """Records come to a task's input."""
        (partition,) = self.inputs[task_id]
        lines = self.log.partitions[partition]
        for number in range(records):
            key = _KEYS[number % len(_KEYS)]
            lines.append((key, b"v", len(lines)))
            if task_id == PLAIN:
                self.fed_plain += 1
            else:
                self.fed[b"%d %s" % (partition.partition, key)] += 1

    # Events of the thread

    def round(self) -> None:
        """Carry out what the group has told, open and restore, as the threads do in each of their rounds."""

        def fill() -> None:
            self._carry_out()
            self.manager.open_created()
            self.restoring.go_step(0)
            self.manager.take_restored()

        self._answered(fill)

    def work(self) -> None:
        """Poll and process."""

        def work() -> None:
            self.manager.add_batches(self.consumer.poll(0))
            self.manager.process(100, self.clock.now_ms())

        self._answered(work)

    def commit(self) -> None:
        self._answered(lambda: self.manager.commit() if self.manager.commit_needed else None)

    def spoil(self, task_id: TaskId) -> None:
        """The state of a running task shows to be corrupt. At least once, changes that a failed commit has logged stay
        in its changelog."""

        def find_corrupt() -> None:
            task = self.tasks().get(task_id)
            if task is not None and task.status is TaskStatus.RUNNING:
                self.may_count_twice |= any(task.logged.values())
                self.manager.working = task
                raise StateCorruptedError("a block of the database is damaged", where=str(task_id))

        self._answered(find_corrupt)

    def revive(self) -> None:
        """What was done since the last commit is to be done again."""
        self._answered(self.manager.revive)

    def restart(self, *, commit: bool) -> None:
        """The thread ends, and another one begins."""
        try:
            self.manager.close(commit=commit)
        except StreamsError:
            self.manager.close(commit=False)
        self._nothing_is_held()
        wanted = self.assigned if self.pending is None else self.pending
        self._start()
        self.assigned = self.followed = frozenset()
        self.pending = wanted

    def fill_disk(self, *, commit: bool) -> None:
        """A commit reaches the log, but not the stores: the last one of the thread, or one before. Another thread
        begins."""
        with patch.object(TaskStores, "commit", side_effect=StateError("the disk is full")):
            if not commit:
                with suppress(StateError):
                    self.commit()
            self.restart(commit=commit)

    def _answered(self, step: Callable[[], object]) -> None:
        """Do a step, and answer its error as the rounds of a thread do."""
        try:
            step()
        except StreamsError as error:
            working, self.manager.working = self.manager.working, None
            if error.action == "wipe" and working is not None:
                self.manager.wipe({working.task_id: error})
            elif error.action == "retry":
                if working is not None:
                    self.manager.revive()
            else:
                raise

    # Invariants

    def check(self) -> None:
        """Every assigned task is in one state, and holds what belongs to that state and nothing else."""
        tasks = self.tasks()
        if self.pending is None:
            assert tasks.keys() == self.assigned
            assert self.standbys().keys() == self.followed
        by_status = {status: [t for t in tasks.values() if t.status is status] for status in TaskStatus}
        # Who failed while it started has begun anew by now.
        assert not by_status[TaskStatus.CLOSED]
        assert not by_status[TaskStatus.STARTING]
        # Nobody is blamed for what fails next.
        assert self.manager.working is None
        running = by_status[TaskStatus.RUNNING]
        assert running or not self.producer.sent, "it would go with the commit of other tasks"
        assert self.manager.running == sorted(running, key=lambda task: task.task_id)
        assert self.manager.settled == (len(running) == len(tasks))
        assert self.consumer.positions.keys() == {p for task in running for p in task.inputs}
        assert {name.partition("-")[0] for name in self.cache._caches} == {
            str(t.task_id) for t in running if self._cache_bytes and t.task_id in self._context.stateful
        }
        # The restoring thread has come by, and tries again later what is not answered.
        with suppress(BrokerUnavailableError):
            self.restorer.adjust_reading()
        followed = [t for t in self.standbys().values() if t.status is TaskStatus.STANDBY]
        restoring = {
            p for task in (*by_status[TaskStatus.RESTORING], *followed) for p in task.changelogs.values()
        }
        assert self.restore_consumer.positions.keys() <= restoring
        assert {one.task_id for one in self.restorer.progress()} <= {
            task.task_id for task in by_status[TaskStatus.RESTORING]
        }
        opened = [t.task_id for t in tasks.values() if t.status is not TaskStatus.CREATED]
        opened += [task.task_id for task in followed]
        assert len(set(opened)) == len(opened), "a task belongs to one owner"
        self._locks_are_held(set(opened))
        made, closed = (self.metrics.total(f"task-{what}-total") for what in ("created", "closed"))
        assert made - closed == len(opened)

    def _locks_are_held(self, open_tasks: Iterable[TaskId]) -> None:
        for task_id in sorted(self._context.stateful):
            on_disk = any(spec.persistent for spec in self._context.subtopology(task_id).stores)
            held = task_id in open_tasks and on_disk
            if task_id in self.locks:
                assert not held
            else:
                assert self._is_locked(task_id) == held, task_id

    def _is_locked(self, task_id: TaskId) -> bool:
        try:
            DirectoryLock(self.directory.task_directory(task_id)).release()
        except StateLockedError:
            return True
        return False

    def _nothing_is_held(self) -> None:
        assert not self.tasks()
        assert not self.standbys()
        assert not self.manager.running
        assert not self.consumer.positions
        self.restorer.adjust_reading()
        assert not self.restore_consumer.positions
        assert not self.cache._caches
        assert not self.cache.size_bytes
        self._locks_are_held(())

    # The end

    def settle(self) -> None:
        """Nothing is in the way any more: every task runs soon, and all records are processed and committed."""
        self.log.faults.clear()
        self.unlock_all()
        self.assign(*TASKS)
        for _ in range(20):
            if self.manager.settled and self.pending is None:
                break
            self.round()
            self.check()
        assert self.manager.settled, [(str(t), s.status) for t, s in self.tasks().items()]
        while not self.manager.caught_up():
            self.work()
            self.commit()

    def counts(self) -> dict[bytes, int]:
        """What the stores hold, by partition and key."""
        found = {}
        for task_id in (COUNTS_0, COUNTS_1):
            with self.tasks()[task_id].stores["counts"].all() as entries:
                found |= {b"%d %s" % (task_id.partition, key.encode()): value.value for key, value in entries}
        return found

    def check_results(self) -> None:
        """Every record counts once, or at least once if this cannot be helped. It is written once where a commit is
        atomic, else at least once."""
        counts = self.counts()
        if self.may_count_twice and not self.log.transactional:
            assert counts.keys() == self.fed.keys()
            assert all(counts[key] >= count for key, count in self.fed.items())
        else:
            assert counts == self.fed
        written = len(self.log.partitions[TopicPartition("loud", 0)])
        assert written == self.fed_plain if self.log.transactional else written >= self.fed_plain

    def close(self) -> None:
        self.log.faults.clear()
        self.manager.close(commit=False)
        self.unlock_all()
        task_manager.log.removeFilter(self._note_warning)


def told(folder: Path, story: Sequence[Event], **settings: Any) -> World:
    """The world behind a story, in which everything was as it should be all the time. Whoever asks for it closes it."""
    world = World(folder, **settings)
    try:
        for name, *arguments in story:
            happen(world, name, *arguments)
    except BaseException:
        world.close()
        raise
    return world


def happen(world: World, name: str, *arguments: Any) -> None:
    """One event, and the look whether all is as it should be."""
    named: Mapping[str, Any] = {"commit": arguments[0]} if name in ("restart", "fill_disk") else {}
    getattr(world, name)(*(() if named else arguments), **named)
    world.check()
