"""Two members of a group with many kinds of stores, and the proof that each store is the fold of its changelog."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast
from unittest.mock import patch

from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.restoring.group_commits import COMMITS_INTERVAL_MS
from pystreams.runtime.tasks.abstract_task import AbstractTask
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.state.task_stores import TaskStores
from tests.unit.runtime.tasks.commands_kit import (
    CACHED,
    COMMANDS,
    GAP_MS,
    KEYS,
    RETENTION_MS,
    Address,
    Command,
    Content,
    Deed,
    Kind,
    address_of,
    application,
    kind_of,
    specs,
)
from tests.unit.runtime.tasks.log_kit import Line, MemoryProducer
from tests.unit.runtime.tasks.relay_kit import Pair
from tests.unit.state.state_kit import read_all

TASK = TaskId(0, 0)

Moment = Literal["now", "before the log commits", "after the log commits"]


class Killed(Exception):  # noqa: N818 - it stands for no error
    """The process is killed at this place."""


class Folds(Pair):
    """Two members, one of which runs the task, and what its stores have to hold."""

    def __init__(
        self, folder: Path, *, transactional: bool, cache_bytes: int, in_memory: bool | None = None
    ) -> None:
        super().__init__(
            folder,
            partial(application, in_memory=in_memory),
            {TASK: frozenset({COMMANDS})},
            transactional=transactional,
            cache_bytes=cache_bytes,
        )
        self.commands: list[Command] = []
        self.stores = [spec.name for spec in specs(in_memory=in_memory)]
        #: What the stores of the active task have to show, and what they had to at the last commit, or when it began.
        self.content = {store: Content(kind_of(store)) for store in self.stores}
        self.kept = {store: content.copy() for store, content in self.content.items()}
        #: The end of the changelog of versions then. In such a log nothing takes the place of another: the offsets of
        #: versions that were undone, and of those that the active task is restored without.
        self._kept_end = 0
        self._undone: set[int] = set()
        self._passed_over: set[int] = set()
        #: How many commands the active task has processed, and the most that any task has.
        self.processed = self.reached = 0
        self._committed_offset = 0
        #: The latest end of a session in the commands.
        self._newest_ms = 0
        #: The active task, since it runs; the time of its last commit and the ends of its changelogs when it began.
        self._task: ActiveTask | None = None
        self._limit_ms = -1
        self._ends: dict[str, int] = {}
        #: Whether the last active task ended in a way that leaves what it had not committed in the changelogs.
        self.ended_badly = False

    @property
    def running(self) -> ActiveTask | None:
        """The active task, if it processes records."""
        task = self.active.tasks().get(TASK)
        return task if task is not None and task.status is TaskStatus.RUNNING else None

    def feed(self, kind: Kind, deed: Deed, key: str, time_ms: int, *, lasts: bool) -> None:
        """A record comes. ``lasts``: its session is longer than a moment."""
        start = end = time_ms
        if kind == "versions":
            # No two versions have one time: one that is deleted at its own time leaves nothing behind.
            start = end = time_ms + len(self.commands)
        elif kind == "plain":
            start = end = 0
        elif kind == "sessions":
            if deed == "merge":
                # A cache may still have sessions that have expired: none of them is to be near enough.
                start = end = max(time_ms, self._newest_ms - RETENTION_MS // 2)
            elif lasts:
                end += GAP_MS
            self._newest_ms = max(self._newest_ms, end)
        command = Command(kind, deed, key, start, end)
        self.commands.append(command)
        self._inputs.append(command.line())

    # What happens

    def commit(self, *, fails: bool) -> None:
        """``fails``: the log refuses when the caches have been flushed."""
        self.log.faults["commit"] = fails
        self.active.commit()
        self.log.faults.clear()

    def abort(self) -> None:
        """What was done since the last commit is to be done again."""
        undone = range(self._kept_end if self.running else len(self._versions), len(self._versions))
        self.active.revive()
        if not self.log.transactional:
            self._undone.update(undone)
            self._passed_over.update(undone)

    def kill(self, which: int, moment: Moment, *, disk_lost: bool) -> None:
        """A process is killed, perhaps in the midst of a commit."""
        if moment != "now" and which == self.owner:
            place: Any = (
                (MemoryProducer, "commit") if moment == "before the log commits" else (TaskStores, "commit")
            )
            with patch.object(*place, side_effect=Killed), suppress(Killed):
                self.active.commit()
            self._follow()
        if which == self.owner:
            self.ended_badly = True
            self._passed_over.clear()
        self.crash(which, disk_lost=disk_lost)

    def promote(self, *, lost: bool) -> None:
        """The standby takes over, and the active task becomes a standby."""
        self.ended_badly |= lost
        self._passed_over.clear()
        self.hand_over(lost=lost)

    def evict(self, share: float) -> None:
        """The caches let go of their oldest entries, so that only a share of their bytes stays."""
        cache = self.active.cache
        full = cache.max_bytes
        cache.resize(int(cache.size_bytes * share))
        cache.resize(full)

    # What has to be

    def check(self) -> None:
        self._follow()
        super().check()
        if self.log.transactional:
            replayed = self._replayed(self._committed_offset)
            for store in self.stores:
                folded = self._folded(store)
                assert folded.visible() == replayed[store].visible(), store
                assert folded.time_ms == replayed[store].time_ms, store

    def _follow(self) -> None:
        """Bring up to date what the active task's stores have to show."""
        task = self.running
        if task is not self._task:
            self._task = task
            if task is not None:
                self._begin(task)
        if task is not None:
            done = task.processed_offsets().get(COMMANDS, 0)
            for offset in range(self.processed, done):
                _do_to(self.content, self.commands[offset], offset)
            self.processed = done
            self.reached = max(self.reached, done)
        committed = self.log.offsets.get(COMMANDS)
        if committed is not None and committed.offset != self._committed_offset:
            self._committed_offset = committed.offset
            assert self._committed_offset == self.processed
            self._keep()
            for store in self.stores:
                if self._is_known(store):
                    folded, content = self._folded(store), self.content[store]
                    assert folded.visible(content.time_ms) == content.visible(), store

    def _begin(self, task: ActiveTask) -> None:
        """A task has restored its stores: they hold the changelogs, and nothing is lost of what was committed."""
        self.processed = self._committed_offset
        if self.log.transactional:
            self.content = self._replayed(self._committed_offset)
        else:
            # Nothing expires that had not expired at the last commit, whatever else was logged since.
            self._limit_ms = max((line[2] for line in self._inputs[: self._committed_offset]), default=-1)
            for store in self.stores:
                content = self._folded(store)
                content.time_ms = min(content.time_ms, self._limit_ms)
                self.content[store] = content
                if not self.ended_badly and self._is_known(store):
                    assert content.visible() == self.kept[store].visible(content.time_ms), store
        self.ended_badly = False
        self._keep()
        self._ends = {store: len(self._changelog(store)) for store in self.stores}

    def _keep(self) -> None:
        """Whoever aborts goes back to this."""
        self.kept = {store: content.copy() for store, content in self.content.items()}
        self._kept_end = len(self._versions)

    @property
    def _versions(self) -> list[Line]:
        return self._changelog("versions")

    @property
    def _inputs(self) -> list[Line]:
        return self.log.partitions[COMMANDS]

    def _changelog(self, store: str) -> list[Line]:
        return self.log.partitions[TopicPartition(f"app-{store}-changelog", 0)]

    def _folded(self, store: str) -> Content:
        """What the changelog says."""
        return Content.of_changelog(kind_of(store), self._changelog(store))

    def _replayed(self, offset: int) -> dict[str, Content]:
        """What the commands say up to an offset."""
        contents = {store: Content(kind_of(store)) for store in self.stores}
        for number, command in enumerate(self.commands[:offset]):
            _do_to(contents, command, number)
        return contents

    def _is_known(self, store: str) -> bool:
        """Whether it is known what the store of the active task has to show. Versions that were undone may be in it or
        not, until they are written again."""
        return self.log.transactional or store != "versions" or self.processed == self.reached

    def check_task(self, task: AbstractTask) -> None:
        """Below the caches, the stores are the fold of the changelog up to where they have read it; those of the active
        task with all that it has written."""
        for store in self.stores:
            lines = self._changelog(store)
            if task is self._task:
                lines = [*lines, *self._sent(store)]
            else:
                lines = lines[: task.state.changelog_offset(store) or 0]
            least = most = Content.of_changelog(kind_of(store), lines)
            if store == "versions":
                mine = task is self.active.tasks().get(TASK)
                least = _without(self._undone, lines)
                most = _without(self._passed_over if mine else (), lines)
            time_ms = self._time_of(task, store, least.time_ms, most.time_ms)
            held = dict(_held(task, store))
            assert least.visible(time_ms).items() <= held.items(), (store, task.status)
            assert held.items() <= most.visible(time_ms).items(), (store, task.status)

    def _sent(self, store: str) -> list[Line]:
        """What the active task has written to a changelog and not committed."""
        topic = TopicPartition(f"app-{store}-changelog", 0)
        return [line for partition, line in self.active.producer.sent if partition == topic]

    def _time_of(self, task: AbstractTask, store: str, least_ms: int, most_ms: int) -> int:
        """The time of a store is that of its changelog. If the changelog may hold what was not committed, a task begins
        at the time of the last commit at most, and a standby stays behind until it hears of the commit."""
        layer: Any = task.state._parts[store].layer
        if kind_of(store) == "plain":
            return -1
        if not self.log.transactional:
            if task is self._task:
                least_written_ms, most_written_ms = self._written_ms(store)
                least_ms = max(min(least_ms, self._limit_ms), least_written_ms)
                most_ms = max(min(most_ms, self._limit_ms), most_written_ms)
            else:
                least_ms = -1
        time_ms: int = layer.time.ms
        assert least_ms <= time_ms <= most_ms, store
        return time_ms

    def _written_ms(self, store: str) -> tuple[int, int]:
        """How far the active task has at least and at most moved the time of a store with what it has logged since it
        began. A session that it found there, of records that were not committed, may be later than all that it has
        processed. To merge or forget it moves the time no further than the record that does this. A cache may log only
        the last change of a session, whose record may be older than the one before: so it is no further than the latest
        record."""
        lines = self._changelog(store)[self._ends[store] :]
        written = [(address_of(kind_of(store), raw or b"", ms)[-1], ms) for raw, _, ms in lines]
        processed_ms = max((line[2] for line in self._inputs[: self.processed]), default=-1)
        return (
            max(map(min, written), default=-1),
            min(processed_ms, max((time_ms for time_ms, _ in written), default=-1)),
        )

    def check_end(self) -> None:
        """All commands are processed and committed, and the standby knows it: it has all that the active task has."""
        self.standby.clock.advance_ms(COMMITS_INTERVAL_MS)
        self.standby.round()
        self.check()
        assert self.processed == self.reached == self._committed_offset == len(self.commands)
        standby = self.standby.standbys()[TASK]
        for store, content in self.content.items():
            assert dict(_held(standby, store)) == content.visible(), store

    # What the stores show to programs

    def _store(self, name: str) -> Any:
        assert self.running is not None
        return self.running.stores[name]

    def read(self, name: str, lower: str, upper: str) -> None:
        store = self._store(name)
        held = sorted((key, value) for (key,), value in self.content[name].visible().items())
        assert read_all(store.range(lower, upper)) == [one for one in held if lower <= one[0] <= upper]
        assert read_all(store.prefix_scan(lower)) == [one for one in held if one[0].startswith(lower)]
        assert read_all(store.all()) == held
        assert store.get(lower) == dict(held).get(lower)

    def read_windows(self, name: str, lower: str, upper: str, first: int, last: int) -> None:
        store = self._store(name)
        of_key = read_all(store.fetch(lower, first, last))
        assert of_key == sorted(of_key)
        self._shows(
            name,
            [((lower, start), value) for start, value in of_key],
            lambda a: a[0] == lower and first <= a[1] <= last,
        )
        self._shows(
            name,
            _windows(store.fetch_range(lower, upper, first, last)),
            lambda a: lower <= a[0] <= upper and first <= a[1] <= last,
        )
        self._shows(name, _windows(store.all()), lambda _: True)
        one = lower, first
        self._shows(name, [(one, store.fetch(*one))], lambda a: a == one)

    def read_sessions(self, name: str, lower: str, upper: str, first: int, last: int) -> None:
        store = self._store(name)
        self._shows(
            name,
            read_all(store.find_sessions(lower, first, last)),
            lambda a: a[0] == lower and a[2] >= first and a[1] <= last,
        )
        self._shows(name, read_all(store.fetch(lower)), lambda a: a[0] == lower)
        self._shows(name, read_all(store.fetch_range(lower, upper)), lambda a: lower <= a[0] <= upper)
        one = lower, first, last
        self._shows(name, [(one, store.fetch_session(*one))], lambda a: a == one)

    def read_versions(self, name: str, key: str, time_ms: int) -> None:
        if not self._is_known(name):
            return
        store, history = self._store(name), self.content[name].history(key)
        assert store.versions(key) == history
        valid = (one for one in history if one[1] <= time_ms and (one[2] is None or time_ms < one[2]))
        assert store.get(key, time_ms) == next(valid, None)
        assert store.get(key) == next((one for one in history if one[2] is None), None)

    def _shows(
        self, store: str, found: Iterable[tuple[Address, str | None]], wanted: Callable[[Address], bool]
    ) -> None:
        """What a read has found is all that the store has to show of the wanted. A store with a cache may also show
        windows and sessions that have expired, as long as they are in the cache."""
        read = [(address, value) for address, value in found if value is not None]
        shown, content = dict(read), self.content[store]
        assert len(read) == len(shown), f"{store} shows something twice"
        has_to = {address: value for address, value in content.visible().items() if wanted(address)}
        if store.endswith(CACHED):
            may = {a: value for a, value in content.entries.items() if value is not None and wanted(a)}
            assert has_to.items() <= shown.items() <= may.items(), store
        else:
            assert shown == has_to, store


def _without(offsets: Container[int], lines: Sequence[Line]) -> Content:
    """The fold of a changelog of versions without some of its records."""
    return Content.of_changelog(
        "versions", [line for offset, line in enumerate(lines) if offset not in offsets]
    )


def _do_to(contents: Mapping[str, Content], command: Command, offset: int) -> None:
    for store, content in contents.items():
        if kind_of(store) == command.kind:
            content.do(command, str(offset))


def _held(task: AbstractTask, store: str) -> Iterable[tuple[Address, str]]:
    """What a store holds below its cache and does not hide."""
    kind, layer = kind_of(store), cast("Any", task.state._parts[store].layer)
    if kind == "versions":
        for key in KEYS:
            for value, since, _ in task.stores[store].versions(key):
                yield (key, since), value
        return
    for raw, value in layer.overlay.scan(None, None) if kind == "plain" else layer.logged():
        yield address_of(kind, raw, -1), value.decode()


def _windows(found: Any) -> list[tuple[Address, str]]:
    return [((window.key, window.start), value) for window, value in read_all(found)]
