"""A standby has what its changelogs say, whatever happens, and takes over without restoring what it has."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from pystreams.engine.offset_metadata import encode_committed
from pystreams.engine.overflow import OverflowReference
from pystreams.errors import StateCorruptedError, StateError
from pystreams.ids import TaskId
from pystreams.metrics import names
from pystreams.record import RecordBatch
from pystreams.runtime.restoring.task_restores import STANDBY_PAUSE_MS
from pystreams.runtime.tasks.abstract_task import AbstractTask
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.state.task_stores import TaskStores
from pystreams.stream_time import NO_TIME, TIME_MAX
from tests.examples import examples
from tests.unit.runtime.tasks.relay_kit import COUNTS, KEYS, ROWS, STORES, Relay, application


@pytest.fixture(params=[True, False], ids=["transactional", "at_least_once"])
def relay(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Relay]:
    relay = Relay(tmp_path, transactional=request.param)
    yield relay
    relay.close()


def feed(relay: Relay, count: int) -> None:
    for number in range(count):
        relay.feed(KEYS[number % len(KEYS)], b"%d" % number)
    relay.feed(KEYS[0], None)


def test_a_standby_follows_the_changelogs_and_says_how_far_it_is(relay: Relay) -> None:
    relay.begin()
    feed(relay, 50)
    relay.settle()
    relay.check()
    relay.check_results()
    manager = relay.standby.manager
    assert manager.standby_ids() == sorted(STORES)
    assert manager.standby_lags() == {COUNTS: 0, ROWS: 0}
    ends = {
        task_id: len(relay.log.partitions[task.changelogs[STORES[task_id]]])
        for task_id, task in relay.standby.standbys().items()
    }
    assert manager.reached() == ends
    assert relay.active.manager.reached() == {}


def test_a_standby_that_is_promoted_reads_nothing_that_it_has(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay.begin()
    feed(relay, 50)
    relay.settle()
    before = {task_id: task.state for task_id, task in relay.standby.standbys().items()}
    relay.hand_over()
    after = relay.active.tasks()
    assert {task_id: task.state for task_id, task in after.items()} == before, "the stores stayed open"
    assert {task.status for task in after.values()} == {TaskStatus.RESTORING}
    restored: Counter[TaskId] = Counter()
    for task in after.values():
        monkeypatch.setattr(task, "restore", partial(count_restored, restored, task, task.restore))
    while not relay.active.manager.settled:
        relay.active.round()
    assert restored.total() == 0, restored
    feed(relay, 10)
    relay.settle()
    relay.check_results()


@pytest.mark.parametrize("persistent", [True, False], ids=["on_disk", "in_memory"])
@pytest.mark.parametrize("unanswered", ["fence", "committed"])
def test_a_standby_that_is_promoted_keeps_its_stores_until_the_broker_answers(
    tmp_path: Path, persistent: bool, unanswered: str
) -> None:
    with closing(Relay(tmp_path, app=partial(application, persistent=persistent))) as relay:
        relay.begin()
        feed(relay, 50)
        relay.settle()
        before = {task_id: task.state for task_id, task in relay.standby.standbys().items()}
        relay.standby.fail(unanswered, 3)
        relay.hand_over()
        assert relay.active.pending is not None, "it was to fail"
        while relay.active.pending is not None:
            assert {id_: task.state for id_, task in relay.active.tasks().items()} == before
            relay.active.round()
        assert {id_: task.state for id_, task in relay.active.tasks().items()} == before
        restored = sum(task.records_restored.value for task in relay.active.tasks().values())
        relay.settle()
        assert sum(task.records_restored.value for task in relay.active.tasks().values()) == restored == 0
        feed(relay, 10)
        relay.settle()
        relay.check_results()


@pytest.mark.parametrize("persistent", [True, False], ids=["on_disk", "in_memory"])
@pytest.mark.parametrize("transactional", [True, False], ids=["transactional", "at_least_once"])
def test_a_task_that_becomes_a_standby_reads_nothing_that_it_has(
    tmp_path: Path, persistent: bool, transactional: bool
) -> None:
    app = partial(application, persistent=persistent)
    with closing(Relay(tmp_path, transactional=transactional, app=app)) as relay:
        relay.begin()
        feed(relay, 50)
        relay.settle()
        relay.hand_over()
        relay.settle()
        relay.check_results()
        metrics = relay.standby.metrics
        assert metrics.total(names.UPDATED) == 0
        before = {task_id: task.reached() for task_id, task in relay.standby.standbys().items()}
        assert min(before.values()) > 0
        feed(relay, 10)
        relay.settle()
        relay.check_results()
        after = {task_id: task.reached() for task_id, task in relay.standby.standbys().items()}
        assert metrics.total(names.UPDATED) == sum(after.values()) - sum(before.values()) > 0


def test_a_task_that_is_lost_is_restored_where_it_becomes_a_standby(tmp_path: Path) -> None:
    """What it holds in memory may be of a commit that the group has refused."""
    app = partial(application, persistent=False)
    with closing(Relay(tmp_path, app=app)) as relay:
        relay.begin()
        feed(relay, 50)
        relay.settle()
        ends = sum(task.reached() for task in relay.standby.standbys().values())
        relay.hand_over(lost=True)
        relay.settle()
        relay.check_results()
        assert relay.standby.metrics.total(names.UPDATED) == ends > 0


def test_metrics_count_what_standbys_read_and_what_tasks_restore(relay: Relay) -> None:
    relay.begin()
    feed(relay, 50)
    relay.settle()
    ends = {task_id: task.reached() for task_id, task in relay.standby.standbys().items()}
    metrics = relay.standby.metrics
    for task_id, end in ends.items():
        tags = {"thread_id": "thread", "task_id": task_id}
        assert metrics.total(names.UPDATED, **tags) == end > 0
        assert metrics.total(names.RESTORED, **tags) == 0
    relay.standby.keep()
    relay.standby.assign()
    for task_id in ends:
        relay.standby.damage(task_id)
    relay.hand_over()
    while not relay.active.manager.settled:
        relay.active.round()
    for task_id, end in ends.items():
        assert metrics.total(names.RESTORED, thread_id="thread", task_id=task_id) >= end
        assert metrics.total(names.UPDATED, task_id=task_id) == end


def test_nothing_expires_while_the_offsets_do_not_say_what_was_emitted(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    monkeypatch.setattr(TaskStores, "limit_time", lambda _, time_ms, _seen: limits.append(time_ms))
    relay.begin()
    limits.clear()
    task = relay.standby.standbys()[COUNTS]
    (partition,) = task.inputs

    def has_committed(emitted: dict[str, int]) -> None:
        def overflow(numbers: Mapping[str, int], has_emitted: bool) -> OverflowReference:
            return OverflowReference(0, 1, 0, 0, 77, has_emitted)

        task.group_committed(encode_committed({partition: 1}, {partition: 5}, {}, emitted, overflow))

    has_committed({f"store-{number}": number**9 for number in range(600)})
    assert limits == [NO_TIME]
    has_committed({"store-1": 7})
    assert limits == [NO_TIME, 5 if task.changelogs_ahead else TIME_MAX]


def count_restored(
    restored: Counter[TaskId],
    task: ActiveTask,
    restore: Callable[[str, RecordBatch], None],
    store: str,
    batch: RecordBatch,
) -> None:
    restored[task.task_id] += len(batch)
    restore(store, batch)


def test_who_gives_tasks_up_goes_on_as_standby_with_its_state(relay: Relay) -> None:
    relay.begin()
    feed(relay, 50)
    relay.settle()
    offsets = {task_id: task.reached() for task_id, task in relay.active.tasks().items()}
    relay.hand_over()
    relay.standby.round()
    standbys = relay.standby.standbys()
    assert {task.status for task in standbys.values()} == {TaskStatus.STANDBY}
    assert {task_id: task.reached() for task_id, task in standbys.items()} == offsets
    relay.settle()
    relay.check_results()


def test_standbys_outlive_the_membership_because_they_only_read(relay: Relay) -> None:
    relay.begin()
    feed(relay, 20)
    relay.settle()
    relay.standby.lose()
    assert relay.standby.manager.standby_ids() == sorted(STORES)
    feed(relay, 20)
    relay.settle()
    relay.check_results()


def test_a_standby_whose_files_are_damaged_is_filled_anew_and_nothing_else_is_touched(relay: Relay) -> None:
    relay.begin()
    feed(relay, 50)
    relay.settle()
    relay.standby.keep(ROWS)
    relay.standby.assign()
    relay.standby.damage(COUNTS)
    relay.standby.keep(*STORES)
    relay.standby.assign()
    relay.settle()
    relay.check()
    relay.check_results()


def test_a_standby_ahead_of_its_changelog_is_filled_anew(relay: Relay) -> None:
    relay.begin()
    feed(relay, 50)
    relay.settle()
    relay.standby.keep()
    relay.standby.assign()
    changelog = relay.active.tasks()[ROWS].changelogs["rows"]
    del relay.log.partitions[changelog][-1]
    relay.standby.keep(*STORES)
    relay.standby.assign()
    relay.standby.round()
    assert relay.standby.standbys()[ROWS].status is TaskStatus.CREATED
    relay.standby.round()
    relay.standby.round()
    assert relay.standby.standbys()[ROWS].reached() == len(relay.log.partitions[changelog])


def test_standbys_wait_while_tasks_of_their_thread_are_restored(relay: Relay) -> None:
    relay.begin()
    feed(relay, 50)
    relay.settle()
    world = relay.standby
    # It gets one of the tasks with nothing on its disk, and has much to read.
    world.keep(ROWS)
    world.assign()
    relay.active.keep(COUNTS)
    relay.active.assign(ROWS)
    world.directory.wipe(COUNTS)
    world.assign(COUNTS)
    world.restorer.step(0, 0)
    assert {p.topic for p in world.restore_consumer.positions} == {"app-counts-changelog"}


def test_a_standby_whose_directory_is_locked_is_opened_later_and_holds_up_nobody(relay: Relay) -> None:
    relay.standby.lock(COUNTS)
    relay.begin()
    assert relay.standby.standbys()[COUNTS].status is TaskStatus.CREATED
    assert relay.standby.manager.settled
    relay.standby.unlock(COUNTS)
    feed(relay, 20)
    relay.settle()
    relay.check_results()


def test_a_standby_whose_stores_cannot_be_opened_is_tried_again_later_and_holds_up_nobody(
    relay: Relay, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = relay.standby
    opener = world.manager._opener
    really_open, tried, broken = opener.open, Counter[TaskId](), {COUNTS}

    def fail_to_open(task: AbstractTask) -> None:
        tried[task.task_id] += 1
        if task.task_id in broken:
            raise StateError("cannot open a task's stores", why="too many open files")
        really_open(task)

    monkeypatch.setattr(opener, "open", fail_to_open)
    # One of the tasks runs here: the broken standby of the other one does not keep it from that.
    relay.active.keep(ROWS)
    relay.active.assign(COUNTS)
    world.keep(COUNTS)
    world.assign(ROWS)
    for _ in range(5):
        world.round()
    assert world.tasks()[ROWS].status is TaskStatus.RUNNING
    assert world.standbys()[COUNTS].status is TaskStatus.CREATED
    assert tried[COUNTS] == 1, "it is not tried in every round"
    (message,) = [text for text in caplog.messages if "too many open files" in text]
    assert f"a standby of task {COUNTS} is tried again in 10 s" in message
    broken.clear()
    world.clock.advance_ms(int(STANDBY_PAUSE_MS))
    world.round()
    assert world.standbys()[COUNTS].status is TaskStatus.STANDBY


def test_a_standby_that_stays_damaged_after_its_state_was_deleted_ends_nothing(
    relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = relay.standby

    def damaged(task: AbstractTask) -> None:
        raise StateCorruptedError("a block of the database is damaged", where=str(task.task_id))

    with monkeypatch.context() as broken:
        broken.setattr(world.manager._opener, "open", damaged)
        relay.begin()
        for _ in range(3):
            world.round()
        assert {task.status for task in world.standbys().values()} == {TaskStatus.CREATED}
    feed(relay, 20)
    relay.settle()
    relay.check_results()


class Relays(RuleBasedStateMachine):
    """Hands tasks to and fro."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._relay: Relay | None = None
        self._story: list[object] = []

    @property
    def relay(self) -> Relay:
        assert self._relay is not None
        return self._relay

    def _told(self, *event: object) -> None:
        self._story.append(event)
        note(f"story: {self._story}")

    @initialize(transactional=st.booleans(), cache_bytes=st.sampled_from([0, 200, 100_000]))
    def begin(self, transactional: bool, cache_bytes: int) -> None:
        self._told("begin", transactional, cache_bytes)
        self._relay = Relay(Path(self._folder.name), transactional=transactional, cache_bytes=cache_bytes)
        self._relay.begin()

    @rule(
        records=st.lists(
            st.tuples(st.sampled_from(KEYS), st.one_of(st.none(), st.sampled_from([b"x", b"y"]))),
            min_size=1,
            max_size=20,
        ),
        commit=st.booleans(),
    )
    def process(self, records: list[tuple[bytes, bytes | None]], commit: bool) -> None:
        self._told("process", records, commit)
        for key, value in records:
            self.relay.feed(key, value)
        self.relay.active.work()
        if commit:
            self.relay.active.commit()
        self.relay.check()

    @rule(which=st.sampled_from([0, 1]), later_ms=st.sampled_from([0, 1_500, 20_000]))
    def round(self, which: int, later_ms: int) -> None:
        self._told("round", which, later_ms)
        self.relay.worlds[which].clock.advance_ms(later_ms)
        self.relay.round(which)
        self.relay.check()

    @rule(lost=st.booleans())
    def hand_over(self, lost: bool) -> None:
        self._told("hand_over", lost)
        self.relay.hand_over(lost=lost)
        self.relay.check()

    @rule()
    def abort(self) -> None:
        self._told("abort")
        self.relay.active.revive()
        self.relay.check()

    @rule(which=st.sampled_from([0, 1]))
    def crash(self, which: int) -> None:
        self._told("crash", which)
        self.relay.crash(which)
        self.relay.check()

    @rule(
        method=st.sampled_from(["restore poll", "restore assign", "group_offsets", "end_offsets", "commit"])
    )
    def fail(self, method: str) -> None:
        self._told("fail", method)
        self.relay.log.faults[method] = 1

    @rule(which=st.sampled_from([0, 1]), task=st.sampled_from(sorted(STORES)))
    def break_restore(self, which: int, task: TaskId) -> None:
        self._told("break_restore", which, task)
        self.relay.worlds[which].break_restore(task)

    @rule(
        which=st.sampled_from([0, 1]),
        task=st.sampled_from(sorted(STORES)),
        name=st.sampled_from(["lock", "unlock", "damage"]),
    )
    def somebody_else(self, which: int, task: TaskId, name: str) -> None:
        self._told(name, which, task)
        getattr(self.relay.worlds[which], name)(task)
        self.relay.check()

    def teardown(self) -> None:
        with self._folder:
            if self._relay is not None:
                try:
                    self._relay.settle()
                    self._relay.check()
                    if self._relay.log.transactional:
                        self._relay.check_results()
                finally:
                    self._relay.close()


Relays.TestCase.settings = examples(8, stateful_step_count=20)
TestRelays = Relays.TestCase
