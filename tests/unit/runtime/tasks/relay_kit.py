"""Two members of a group with state directories of their own: the active tasks of one are the standbys of the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from pystreams import App
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.abstract_task import AbstractTask
from pystreams.runtime.tasks.task import TaskStatus
from tests.unit.runtime.tasks.log_kit import MemoryLog
from tests.unit.runtime.tasks.manager_kit import World

COUNTS, ROWS = TaskId(0, 0), TaskId(1, 0)
STORES = {COUNTS: "counts", ROWS: "rows"}
INPUTS = {
    COUNTS: frozenset({TopicPartition("in", 0)}),
    ROWS: frozenset({TopicPartition("table", 0)}),
}
KEYS = (b"a", b"b", b"c", b"d")


def application(*, persistent: bool = True) -> App:
    """``persistent``: its stores are on disk."""
    app = App("app")
    grouped = app.stream("in", key=str, value=str).group_by_key()
    grouped.count(name="counts", persistent=persistent).to_stream().to("out")
    app.table("table", key=str, value=str, name="rows", persistent=persistent).to_stream().to("changed")
    return app


class Pair:
    """The two members, with any application."""

    def __init__(
        self,
        folder: Path,
        application: Callable[[], App],
        inputs: Mapping[TaskId, frozenset[TopicPartition]],
        *,
        transactional: bool,
        cache_bytes: int,
    ) -> None:
        self.log = MemoryLog(transactional=transactional)
        self.worlds = [
            World(
                folder / name,
                log=self.log,
                application=application,
                inputs=inputs,
                cache_bytes=cache_bytes,
            )
            for name in ("one", "two")
        ]
        self.task_ids = tuple(inputs)
        #: Which of the two runs the tasks.
        self.owner = 0

    @property
    def active(self) -> World:
        return self.worlds[self.owner]

    @property
    def standby(self) -> World:
        return self.worlds[1 - self.owner]

    def hand_over(self, *, lost: bool = False) -> None:
        """The other one gets the tasks, and this one the standbys. ``lost``: it was taken for dead."""
        if lost:
            self.active.lose()
        self._assign(self.active, ())
        if self.active.pending is not None:
            # It could not commit: the group gives its tasks to nobody yet.
            return
        self.owner = 1 - self.owner
        self._assign(self.active, self.task_ids)

    def _assign(self, world: World, tasks: tuple[TaskId, ...]) -> None:
        world.keep(*(set(self.task_ids) - set(tasks)))
        world.assign(*tasks)

    def begin(self) -> None:
        """The first assignment."""
        self._assign(self.standby, ())
        self._assign(self.active, self.task_ids)

    def crash(self, which: int, *, disk_lost: bool = False) -> None:
        """A process is killed: what was not committed is gone, and it comes back with its directory, or with an empty
        one."""
        world = self.worlds[which]
        faults = self.log.faults.copy()
        self.log.faults.clear()
        # Nothing is taken back and nothing committed: only locks are released, as the kernel does.
        world.producer.abort()
        world.lose()
        for task_id in list(world.standbys()):
            world.manager._standbys.close(task_id)
        if disk_lost:
            for task_id in self.task_ids:
                world.directory.wipe(task_id)
        world._start()
        world.assigned = world.followed = frozenset()
        world.pending = None
        self.log.faults.update(faults)
        self._assign(world, self.task_ids if which == self.owner else ())

    def round(self, which: int) -> None:
        self.worlds[which].round()

    def settle(self) -> None:
        """Nothing is in the way any more: all is processed, committed and followed."""
        self.log.faults.clear()
        for world in self.worlds:
            world.unlock_all()
        # A hand-over that failed half-way is taken back.
        self.begin()
        for _ in range(200):
            for world in self.worlds:
                world.clock.advance_ms(2_000)
                world.round()
            self.check()
            if self.active.pending is None and self.active.manager.settled:
                self.active.work()
                self.active.commit()
                self.standby.round()
                lags = self.standby.manager.standby_lags()
                if self.active.manager.caught_up() and lags == dict.fromkeys(self.task_ids, 0):
                    return
        raise AssertionError(f"never settled: {self.standby.manager.standby_lags()}")

    def check(self) -> None:
        for world in self.worlds:
            world.check()
            for task in (*world.tasks().values(), *world.standbys().values()):
                if task.status not in (TaskStatus.CREATED, TaskStatus.CLOSED):
                    self.check_task(task)

    def check_task(self, task: AbstractTask) -> None:
        """The stores of a task that is open hold what they should."""
        raise NotImplementedError

    def close(self) -> None:
        self.log.faults.clear()
        for world in self.worlds:
            world.close()


class Relay(Pair):
    """Two tasks, and what their stores should hold in the end."""

    def __init__(
        self,
        folder: Path,
        *,
        transactional: bool = True,
        cache_bytes: int = 200,
        app: Callable[[], App] = application,
    ) -> None:
        super().__init__(folder, app, INPUTS, transactional=transactional, cache_bytes=cache_bytes)
        self.counts: Counter[bytes] = Counter()
        self.rows: dict[bytes, bytes] = {}

    def feed(self, key: bytes, value: bytes | None) -> None:
        """A record for each task; None deletes a row."""
        for partition in (TopicPartition("in", 0), TopicPartition("table", 0)):
            lines = self.log.partitions[partition]
            if value is not None or partition.topic == "table":
                lines.append((key, value, len(lines)))
        if value is None:
            self.rows.pop(key, None)
        else:
            self.counts[key] += 1
            self.rows[key] = value

    def check_task(self, task: AbstractTask) -> None:
        """What is on disk is what the changelog says, up to the offset that is on disk."""
        store = STORES[task.task_id]
        part = task.state._parts[store]
        offset = task.state.changelog_offset(store) or 0
        lines = self.log.partitions[task.changelogs[store]][:offset]
        keys, values, times = ([line[place] for line in lines] for place in range(3))
        folded = dict(zip(keys, part.layer.form.all_to_stored(values, times, None), strict=True))
        held = dict(part.table.scan(None, None, upper_inclusive=True, reverse=False))
        assert held == {key: value for key, value in folded.items() if value is not None}, task.task_id

    def check_results(self) -> None:
        """Both hold everything."""
        for world, tasks in ((self.active, self.active.tasks()), (self.standby, self.standby.standbys())):
            assert tasks.keys() == STORES.keys(), world.directory.path
            with tasks[COUNTS].stores["counts"].all() as entries:
                assert {key.encode(): value.value for key, value in entries} == self.counts
            with tasks[ROWS].stores["rows"].all() as entries:
                assert {key.encode(): value.value.encode() for key, value in entries} == self.rows
