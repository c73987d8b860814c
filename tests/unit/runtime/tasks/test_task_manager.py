"""Whatever happens to the tasks of a thread, in whichever order: every task is in one state, what is closed holds
nothing, and in the end every record is counted once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from pystreams.errors import BrokerUnavailableError, StateCorruptedError, StateError, TaskMigratedError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.changelog_guard import ChangelogGuard, Undone
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.threads.activity import COMMIT, GROUP, NOTHING, Activity
from pystreams.state.task_stores import TaskStores
from pystreams.stream_time import TIME_MAX
from tests.examples import examples
from tests.unit.runtime.tasks.manager_kit import (
    COUNTS_0,
    COUNTS_1,
    FAULTS,
    PLAIN,
    TASKS,
    Event,
    World,
    happen,
    told,
)

CREATED, RUNNING = TaskStatus.CREATED, TaskStatus.RUNNING


@pytest.fixture
def tell(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    def tell(*story: Event, **settings: Any) -> World:
        world = told(tmp_path, story, **settings)
        request.addfinalizer(world.close)
        return world

    return tell


def test_tasks_are_opened_before_they_are_claimed_and_run_when_they_are_restored(tell: Any) -> None:
    world = tell(("assign", *TASKS))
    assert {world.status(task) for task in TASKS} == {TaskStatus.RESTORING}
    assert world.log.claimed == {p for task in world.tasks().values() for p in task.inputs}
    happen(world, "round")
    assert {world.status(task) for task in TASKS} == {RUNNING}


def test_whatever_the_number_of_tasks_the_log_is_asked_once(tell: Any) -> None:
    world = tell(("assign", *TASKS), ("round",))
    # Once for what is restored, once for where to start.
    asked = ("fence", "committed", "beginning_offsets", "end_offsets")
    assert {method: world.log.calls[method] for method in asked} == dict(
        zip(asked, (1, 2, 2, 2), strict=True)
    )


def test_whoever_had_the_tasks_is_fenced_before_their_commits_are_read(tell: Any) -> None:
    world = tell(("fail", "fence", 1), ("assign", *TASKS))
    assert world.log.calls["committed"] == 0
    happen(world, "fail", "committed", 1)
    happen(world, "round")
    assert world.log.fenced == [list(TASKS)]
    assert world.log.calls["committed"] == 1


def test_a_task_whose_directory_is_locked_waits_and_the_others_run(tell: Any) -> None:
    world = tell(("lock", COUNTS_0), ("assign", *TASKS), ("round",))
    assert [world.status(task) for task in TASKS] == [CREATED, RUNNING, RUNNING]
    assert COUNTS_0 not in {task.task_id for task in world.manager.tasks()}
    happen(world, "unlock", COUNTS_0)
    happen(world, "round")
    assert world.manager.settled


def test_tasks_that_were_opened_stay_open_until_the_log_answers(tell: Any) -> None:
    world = tell(("fail", "committed", 2), ("assign", *TASKS))
    for _ in range(2):
        assert {task.status for task in world.tasks().values()} == {TaskStatus.OPENED}
        assert not world.log.claimed, "a claim would say that the commits were read"
        happen(world, "round")
    assert world.metrics.total("task-created-total") == len(TASKS), "none was opened again"
    assert world.log.claimed
    assert world.manager.settled


def test_each_task_that_is_opened_or_closed_keeps_the_membership(tell: Any) -> None:
    """Each may take seconds, and the group waits for a poll only for some minutes."""
    world = tell(("assign", *TASKS))
    calls = world.log.calls
    assert calls["keep_alive"] == len(TASKS)
    happen(world, "round")
    happen(world, "assign")
    assert calls["keep_alive"] == 2 * len(TASKS)


def test_a_member_that_gets_no_further_does_not_keep_the_group_waiting(tell: Any) -> None:
    world = tell(("fail", "committed", 4), ("assign", *TASKS))
    before = world.log.calls["keep_alive"]
    for _ in range(3):
        happen(world, "round")
    assert not world.log.claimed
    assert world.log.calls["keep_alive"] == before


def test_damaged_files_are_deleted_and_restored(tell: Any) -> None:
    world = tell(
        ("assign", *TASKS), ("round",), ("feed", COUNTS_0, 5), ("work",), ("commit",), ("assign",),
        ("damage", COUNTS_0), ("assign", *TASKS), ("round",),
    )  # fmt: skip
    assert world.manager.settled
    assert world.counts() == world.fed


def test_files_that_stay_damaged_are_not_deleted_for_ever(tell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world = tell()

    def refuse(*_: object, **__: object) -> None:
        raise StateCorruptedError("nothing can be read from this disk")

    monkeypatch.setattr("pystreams.runtime.tasks.task_opening.new_task", refuse)
    with pytest.raises(StateCorruptedError, match="nothing can be read"):
        world.assign(COUNTS_0)
    assert world.status(COUNTS_0) is CREATED


@pytest.mark.parametrize("transactional", [True, False])
def test_a_corrupt_task_is_restored_and_the_others_go_back_to_their_last_commit(
    tell: Any, transactional: bool
) -> None:
    world = tell(
        ("assign", *TASKS), ("round",), ("feed", COUNTS_0, 5), ("feed", COUNTS_1, 3), ("work",), ("commit",),
        ("feed", COUNTS_1, 3), ("work",), ("spoil", COUNTS_0),
        transactional=transactional,
    )  # fmt: skip
    assert {task.status for task in world.tasks().values()} == {CREATED}
    world.settle()
    world.check_results()


def test_a_task_that_fails_while_it_starts_begins_anew(tell: Any) -> None:
    world = tell(("assign", COUNTS_0, PLAIN), ("fail", "main assign", 1), ("round",))
    # The other one had not begun to start, and is still complete.
    assert [world.status(task) for task in (COUNTS_0, PLAIN)] == [CREATED, TaskStatus.RESTORED]
    happen(world, "round")
    assert world.manager.settled


def test_state_that_shows_to_be_corrupt_while_it_is_restored_is_restored_from_the_beginning(
    tell: Any,
) -> None:
    world = tell(
        ("assign", *TASKS), ("round",), ("feed", COUNTS_0, 50), ("work",), ("commit",), ("restart", True),
        ("damage", COUNTS_0), ("break_restore", COUNTS_0), ("round",),
    )  # fmt: skip
    assert world.status(COUNTS_0) is CREATED
    assert world.status(COUNTS_1) is RUNNING
    world.settle()
    world.check_results()


def test_what_left_while_it_was_restored_is_not_started(tell: Any) -> None:
    world = tell(("assign", *TASKS), ("restart", True), ("assign", *TASKS), ("assign", PLAIN), ("round",))
    assert list(world.tasks()) == [PLAIN]


def test_a_task_that_waited_for_its_directory_may_leave_again(tell: Any) -> None:
    world = tell(("lock", COUNTS_0), ("assign", COUNTS_0), ("assign",), ("unlock", COUNTS_0), ("round",))
    assert not world.tasks()


@pytest.mark.parametrize("event", [("assign", PLAIN), ("restart", True), ("commit",)])
def test_whatever_makes_a_thread_commit_others_see_that_it_does_and_when_it_did(
    tell: Any, event: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = tell(("assign", *TASKS), ("round",), ("feed", COUNTS_0, 5), ("work",))
    activity, commit = world.activity, world.producer.commit
    seen = [activity.now(None)]

    def look(*arguments: Any) -> Any:
        world.clock.advance_ms(7)
        seen.append(activity.now(None))
        return commit(*arguments)

    monkeypatch.setattr(world.producer, "commit", look)
    activity.begin(GROUP)
    happen(world, *event)
    world.clock.advance_ms(3)
    assert seen == [Activity(NOTHING), Activity(COMMIT, 7.0)]
    assert activity.now(None) == Activity(GROUP, 3.0, committed_ms=3.0)


def test_after_a_loss_nothing_is_committed(tell: Any) -> None:
    world = tell(("assign", *TASKS), ("round",), ("feed", COUNTS_0, 3), ("work",), ("lose",))
    assert not world.log.offsets
    assert not world.log.claimed


def test_a_task_that_leaves_and_those_that_stay_are_committed_together(
    tell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They share a transaction: a commit of the one alone would make the work of the others final without its
    offsets."""
    world = tell(("assign", *TASKS), ("round",), ("feed", COUNTS_0, 5), ("feed", PLAIN, 3), ("work",))
    committed: list[dict[str, int]] = []
    commit = world.producer.commit

    def look(offsets: Any, member: Any) -> Any:
        committed.append({str(partition): at.offset for partition, at in offsets.items()})
        return commit(offsets, member)

    monkeypatch.setattr(world.producer, "commit", look)
    happen(world, "assign", PLAIN)
    assert committed == [{"in-0": 5, "other-0": 3}]


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_not_committed_at_the_end_is_done_again(tell: Any, commit: bool) -> None:
    world = tell(
        ("assign", *TASKS), ("round",), ("feed", COUNTS_0, 9), ("work",), ("restart", commit), ("round",)
    )  # fmt: skip
    world.settle()
    world.check_results()


def test_nothing_is_processed_unless_the_group_confirms_a_doubtful_membership(tell: Any) -> None:
    world = tell(("assign", PLAIN), ("round",), ("feed", PLAIN, 1))
    world.manager.add_batches(world.consumer.poll(0))
    world.log.faults["confirm"] = 1
    with pytest.raises(BrokerUnavailableError):
        world.manager.process(1, 0)
    assert world.manager.process(1, 0) == 1


#: With work that is not committed: what is done, and what becomes of it and of the three inputs, in this order. What a
#: processor writes while it is closed must not go with the next commit: the producer forgets it at the very end. At
#: least once, what the changelogs hold too much is taken back first, in a commit that has nothing else.
CLOSE_ALL = ["unassign"] * 3
ENDINGS: list[tuple[Event, list[str], list[str]]] = [
    (("lose",), ["abort", *CLOSE_ALL, "abort"], ["abort", *CLOSE_ALL, "abort"]),
    (("revive",), [*CLOSE_ALL, "abort"], ["abort", "commit", *CLOSE_ALL, "abort"]),
    (("spoil", COUNTS_0), [*CLOSE_ALL, "abort"], ["abort", "commit", *CLOSE_ALL, "abort"]),
    (("restart", False), [*CLOSE_ALL, "abort"], ["abort", "commit", *CLOSE_ALL, "abort"]),
    (("restart", True), ["commit", *CLOSE_ALL, "abort"], ["commit", *CLOSE_ALL, "abort"]),
    (("assign", PLAIN), ["commit", *["unassign"] * 2, "abort"], ["commit", *["unassign"] * 2, "abort"]),
]


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize(("event", "atomic", "at_least_once"), ENDINGS)
def test_the_producer_commits_and_forgets_at_the_right_moments(
    tell: Any, event: Event, atomic: list[str], at_least_once: list[str], transactional: bool
) -> None:
    world = tell(
        ("assign", *TASKS), ("round",), ("feed", COUNTS_0, 5), ("work",), ("commit",), ("feed", COUNTS_0, 5),
        ("work",), transactional=transactional,
    )  # fmt: skip
    # The caches have kept it from the log until now.
    for task in world.manager.running:
        task.flush()
    world.log.journal.clear()
    happen(world, *event)
    assert world.log.journal == (atomic if transactional else at_least_once)


#: All but the last event of a thread, which has then something to commit and to take back.
WITH_WORK: list[Event] = [
    ("assign", *TASKS), ("round",), ("feed", COUNTS_0, 5), ("work",), ("commit",), ("feed", COUNTS_0, 5), ("work",),
]  # fmt: skip


@pytest.mark.parametrize("transactional", [True, False])
def test_what_a_last_commit_has_logged_before_it_failed_counts_once(tell: Any, transactional: bool) -> None:
    world = tell(*WITH_WORK, ("fail", "commit", 1), ("restart", True), transactional=transactional)
    assert not world.may_count_twice
    world.settle()
    world.check_results()


def test_if_the_log_does_not_answer_then_either_a_warning_says_what_may_count_twice(
    tell: Any, caplog: pytest.LogCaptureFixture
) -> None:
    world = tell(
        *WITH_WORK, ("fail", "commit", 1), ("fail", "end_offsets", 1), ("restart", True), transactional=False
    )
    assert "changelogs could not be corrected, so repeated records may count twice" in caplog.text
    assert "end_offsets is not answered" in caplog.text
    world.settle()
    world.check_results()


def test_a_last_commit_that_the_group_refuses_takes_nothing_back(
    tell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The changelogs belong to others then."""
    world = tell(*WITH_WORK, transactional=False)

    def refuse(*_: object) -> None:
        raise TaskMigratedError("another member has the tasks")

    monkeypatch.setattr(world.producer, "commit", refuse)
    world.log.journal.clear()
    with pytest.raises(TaskMigratedError):
        world.manager.close(commit=True)
    assert world.log.journal == [*CLOSE_ALL, "abort"]


def test_nothing_is_taken_back_of_a_task_whose_state_shows_to_be_corrupt_at_the_end(
    tell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its stores hold must not come to its changelogs."""
    world = tell(*WITH_WORK, transactional=False)
    taken_back: list[TaskId] = []

    def take_back(guard: ChangelogGuard, tasks: list[ActiveTask]) -> list[Undone]:
        taken_back.extend(task.task_id for task in tasks)
        return []

    def find_corrupt() -> None:
        raise StateCorruptedError("a block of the database is damaged")

    monkeypatch.setattr(ChangelogGuard, "take_back", take_back)
    monkeypatch.setattr(world.tasks()[COUNTS_1].state, "flush_caches", find_corrupt)
    with pytest.raises(StateCorruptedError):
        world.manager.close(commit=True)
    assert taken_back == [COUNTS_0, PLAIN]


@pytest.mark.parametrize("event", [("revive",), ("restart", False)])
def test_a_store_that_cannot_be_read_keeps_no_other_changelog_from_being_corrected(
    tell: Any, event: Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = tell(
        ("assign", *TASKS), ("round",), ("feed", COUNTS_0, 5), ("feed", COUNTS_1, 5), ("work",), ("commit",),
        ("feed", COUNTS_0, 5), ("feed", COUNTS_1, 5), ("work",),
        transactional=False, cache_bytes=0,
    )  # fmt: skip

    def fail(*_: object) -> None:
        raise StateError("the database cannot be read")

    monkeypatch.setattr(world.tasks()[COUNTS_0].state, "as_logged", fail)
    happen(world, *event)
    assert "task 0_0: its changelogs could not be corrected" in caplog.text
    assert "the database cannot be read" in caplog.text
    assert not world.may_count_twice, "nothing is said of the other tasks"
    world.settle()
    counts = world.counts()
    assert all(counts[key] == count for key, count in world.fed.items() if key.startswith(b"1 "))
    assert all(counts[key] >= count for key, count in world.fed.items())


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("transactional", [True, False])
def test_what_a_commit_has_brought_to_the_log_but_not_to_the_stores_is_not_taken_back(
    tell: Any, transactional: bool, commit: bool
) -> None:
    world = tell(*WITH_WORK, ("fill_disk", commit), transactional=transactional)
    assert not world.may_count_twice
    world.settle()
    world.check_results()


def test_what_leaves_while_it_is_restored_is_not_read_any_more(tell: Any) -> None:
    world = tell(
        ("assign", COUNTS_0), ("round",), *[("feed", COUNTS_0, 3), ("work",), ("commit",)] * 20, ("restart", True),
        ("damage", COUNTS_0), ("assign", COUNTS_0), ("fail", "restore poll", 1), ("round",),
    )  # fmt: skip
    assert world.restore_consumer.positions
    happen(world, "assign", PLAIN)
    assert not world.restore_consumer.positions
    world.settle()
    world.check_results()


@pytest.mark.parametrize("transactional", [True, False])
def test_stores_get_the_time_of_the_last_commit_if_changelogs_may_be_ahead_of_it(
    tell: Any, transactional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    monkeypatch.setattr(TaskStores, "limit_time", lambda _, time_ms, _seen: limits.append(time_ms))
    world = tell(
        ("assign", COUNTS_0), ("round",), ("feed", COUNTS_0, 5), ("work",), transactional=transactional
    )
    happen(world, "restart", True)
    limits.clear()
    happen(world, "assign", COUNTS_0)
    assert limits == [TIME_MAX if transactional else 4]


def test_stores_get_the_stream_time_in_force_if_more_was_seen(
    tell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their changelogs hold what was seen beyond it, and records before that are still to come."""
    limits: list[int] = []
    monkeypatch.setattr(TaskStores, "limit_time", lambda _, time_ms, _seen: limits.append(time_ms))
    world = tell(("assign", COUNTS_0), ("round",), transactional=True)
    world.tasks()[COUNTS_0].stream.limit_time(2)
    limits.clear()
    for event in [("feed", COUNTS_0, 5), ("work",), ("restart", True), ("assign", COUNTS_0)]:
        happen(world, *event)
    assert limits == [2]


def test_stretches_of_changelogs_are_passed_over_until_others_may_write_there(
    tell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = tell(("assign", *TASKS), ("round",))
    forgotten: list[TopicPartition] = []
    monkeypatch.setattr(world.restorer, "know_nothing_of", forgotten.extend)
    changelog = world.tasks()[COUNTS_0].changelogs["counts"]
    happen(world, "revive")
    assert not forgotten
    # It is not open, and leaves.
    happen(world, "assign", COUNTS_1)
    assert forgotten == [changelog]


#: Stories that failed once, some with code that was broken on purpose. The state machine below prints such lines.
STORIES: list[list[Event]] = [
    [("assign", *TASKS), ("round",), ("lose",)],
    [("fail", "fence", 1), ("assign", *TASKS)],
    [("assign", *TASKS), ("round",), ("feed", COUNTS_0, 1), ("work",), ("assign",)],
    [("assign", *TASKS), ("round",), ("feed", PLAIN, 3), ("work",), ("revive",)],
    [("fail", "commit", 1), ("assign", *TASKS), ("round",), ("feed", COUNTS_0, 1), ("work",), ("restart", True)],
    [
        ("fail", "commit", 1), ("assign", *TASKS), ("round",), ("feed", COUNTS_0, 1), ("work",), ("commit",), ("lose",),
    ],
    [
        ("assign", COUNTS_0), ("round",), ("feed", COUNTS_0, 5), ("work",), ("commit",), ("restart", True),
        ("damage", COUNTS_0), ("assign", COUNTS_0), ("fail", "restore assign", 1), ("round",),
    ],
]  # fmt: skip


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("story", STORIES)
def test_stories_that_failed_once_end_well(tell: Any, story: list[Event], transactional: bool) -> None:
    world = tell(*story, transactional=transactional)
    world.settle()
    world.check_results()


task_ids = st.sampled_from(TASKS)
stateful_ids = st.sampled_from([COUNTS_0, COUNTS_1])
INTERRUPTIONS: list[Event] = [
    ("revive",), ("lose",), ("assign",), ("restart", True), ("restart", False), ("fill_disk", True),
    ("fill_disk", False),
]  # fmt: skip


class Lives(RuleBasedStateMachine):
    """Tells stories. One that fails is printed as a line for ``STORIES``."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._story: list[Event] = []
        self._world: World | None = None

    @initialize(transactional=st.booleans())
    def begin(self, transactional: bool) -> None:
        self._world = World(Path(self._folder.name), transactional=transactional)

    def _tell(self, *event: Any) -> None:
        assert self._world is not None
        self._story.append(event)
        note(f"story: {self._story}")
        happen(self._world, *event)

    @rule(assignments=st.lists(st.sets(task_ids, min_size=1), min_size=1, max_size=3))
    def assign(self, assignments: list[set[TaskId]]) -> None:
        for tasks in assignments:
            self._tell("assign", *sorted(tasks))

    @rule(standbys=st.sets(stateful_ids))
    def keep(self, standbys: set[TaskId]) -> None:
        """From the next assignment on."""
        self._tell("keep", *sorted(standbys))

    @rule()
    def round(self) -> None:
        self._tell("round")

    @rule()
    def run(self) -> None:
        """Stories get somewhere by it."""
        self._tell("assign", *TASKS)
        self._tell("round")

    @rule(task=task_ids, records=st.integers(1, 30), commit=st.booleans())
    def process(self, task: TaskId, records: int, commit: bool) -> None:
        self._tell("feed", task, records)
        self._tell("work")
        if commit:
            self._tell("commit")

    @rule(task=stateful_ids, name=st.sampled_from(["lock", "unlock"]))
    def somebody_else(self, task: TaskId, name: str) -> None:
        self._tell(name, task)

    @rule(method=st.sampled_from(FAULTS), times=st.integers(1, 2))
    def fail(self, method: str, times: int) -> None:
        self._tell("fail", method, times)

    @rule(task=stateful_ids, name=st.sampled_from(["damage", "break_restore", "spoil"]))
    def corrupt(self, task: TaskId, name: str) -> None:
        self._tell(name, task)

    @rule(event=st.sampled_from(INTERRUPTIONS))
    def interrupt(self, event: Event) -> None:
        self._tell(*event)

    def teardown(self) -> None:
        with self._folder:
            if self._world is not None:
                try:
                    self._world.settle()
                    self._world.check_results()
                finally:
                    self._world.close()


Lives.TestCase.settings = examples(60, stateful_step_count=25)
TestEveryLife = Lives.TestCase
