"""Records that are left out: the first of a kind is told in full, the others are counted, none is forgotten."""

from __future__ import annotations

import pytest

from pystreams.engine.failures.lateness import LateRecords
from pystreams.engine.failures.left_out import (
    LOG_INTERVAL_MS,
    Fate,
    Kind,
    LeftOut,
    LeftOutRecord,
    Step,
    totals_text,
)
from pystreams.ids import TaskId
from pystreams.serde import STR
from pystreams.topology.nodes import SourceNode

COUNT = Step("COUNT", "counts", (SourceNode("SOURCE", ("in",), key_serde=STR, value_serde=STR),))
NO_KEY = Kind(Fate.DROPPED, COUNT, "null key", "in")
LATE = Kind(Fate.DROPPED, COUNT, "the window has closed", "in", late=True)
RAISED = Kind(Fate.DEAD_LETTER, Step("MAP"), "processing failed with ValueError", "in")


class Scene:
    """A client with tasks that leave records out."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.left_out = LeftOut("dead")
        self._caplog = caplog

    def leave_out(self, kind: Kind, times: int = 1, task: TaskId = TaskId(0, 0)) -> None:  # noqa: B008 - a tuple
        counts = self.left_out.of_task(task)
        for _ in range(times):
            if counts.add(kind, again=False):
                self.left_out.log_first(kind, task, "in-0 offset 5", "a cause")

    def come_late(self, late_ms: int, grace_ms: int, *, task: int = 0, records: int = 1) -> None:
        self.leave_out(LATE, records, TaskId(0, task))
        self.left_out.of_task(TaskId(0, task)).add_late(COUNT, records, late_ms, grace_ms)

    def read(self, records: int, *, task: int = 0, topic: str = "in") -> None:
        self.left_out.of_task(TaskId(0, task)).add_read(topic, records)

    def messages(self) -> list[str]:
        """What was logged since the last time."""
        messages = [record.getMessage() for record in self._caplog.records]
        self._caplog.clear()
        return messages


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> Scene:
    return Scene(caplog)


def test_the_first_one_is_reported_in_full_with_where_it_went(scene: Scene):
    scene.leave_out(RAISED, 3)
    (messages,) = scene.messages()
    assert messages == (
        "a record was moved to the dead-letter topic dead: task 0_0, step MAP, in-0 offset 5:"
        " processing failed with ValueError: a cause; more of this kind are counted"
    )


def test_the_store_of_the_step_is_named(scene: Scene):
    scene.leave_out(NO_KEY)
    (message,) = scene.messages()
    assert message.startswith(
        "a record was dropped: task 0_0, step COUNT (store counts), in-0 offset 5: null key"
    )


def test_the_first_one_of_another_task_is_not_reported_again(scene: Scene):
    for partition in range(64):
        scene.leave_out(RAISED, task=TaskId(0, partition))
    assert len(scene.messages()) == 1
    scene.left_out.log_counts(0, 0)
    (messages,) = scene.messages()
    assert messages.startswith(
        "64 records so far were moved to the dead-letter topic dead (topic in, step MAP)"
    )


def test_more_are_reported_together_every_30_s_and_only_if_there_are_more(scene: Scene):
    scene.left_out.log_counts(0)
    scene.leave_out(NO_KEY, 1_000)
    scene.leave_out(RAISED, 1)
    scene.messages()
    scene.left_out.log_counts(LOG_INTERVAL_MS - 1)
    assert scene.messages() == []
    scene.left_out.log_counts(LOG_INTERVAL_MS)
    message = "1,000 records so far were dropped (topic in, step COUNT (store counts)): null key"
    assert scene.messages() == [message]
    scene.left_out.log_counts(2 * LOG_INTERVAL_MS)
    assert scene.messages() == []
    scene.leave_out(NO_KEY)
    scene.left_out.log_counts(3 * LOG_INTERVAL_MS)
    assert scene.messages() == [message.replace("1,000", "1,001")]


def test_of_late_records_the_worst_and_the_remedy_are_reported(scene: Scene):
    scene.read(1_000)
    scene.come_late(57_000, 47_001, records=5)
    scene.come_late(100, 90, records=5)
    scene.messages()
    scene.left_out.log_counts(0, 0)
    (message,) = scene.messages()
    assert message == (
        "10 records so far were dropped (topic in, step COUNT (store counts)): the window has closed; "
        "up to 57 s late; a grace of at least 47.001 s would have kept them"
    )


def test_if_more_than_one_in_a_hundred_is_late_the_share_is_reported_too(scene: Scene):
    scene.read(1_000)
    scene.read(7, topic="not read by the step")
    scene.come_late(57_000, 47_001, records=11)
    scene.messages()
    scene.left_out.log_counts(0, 0)
    (message,) = scene.messages()
    assert message == (
        "11 records so far were dropped (topic in, step COUNT (store counts)): the window has closed; "
        "11 of 1,000 records (1.1 %), up to 57 s late; a grace of at least 47.001 s would have kept them"
    )


def test_late_records_of_all_tasks_are_counted_together_and_compared_with_what_all_have_read(scene: Scene):
    for task, (late_ms, grace_ms) in enumerate([(9, 4), (7, 6)]):
        scene.come_late(late_ms, grace_ms, task=task)
    for task in range(3):
        scene.read(10, task=task)
    (late,) = scene.left_out.late()
    assert late == LateRecords("COUNT", "counts", 2, 9, 6, 30)


def test_what_was_counted_since_the_last_commit_can_be_taken_back(scene: Scene):
    scene.leave_out(NO_KEY)
    scene.come_late(9, 4)
    scene.read(10)
    counts = scene.left_out.of_task(TaskId(0, 0))
    counts.commit({"in": 3})
    scene.come_late(57, 47)
    scene.leave_out(RAISED)
    scene.read(10)
    assert scene.left_out.totals() == {"moved to the dead-letter topic dead": 1, "dropped": 3}
    counts.take_back()
    assert scene.left_out.totals() == {"dropped": 2}
    assert scene.left_out.kinds() == {NO_KEY: 1, LATE: 1}
    # Three of ten records waited to be processed, and are read again.
    assert scene.left_out.late() == [LateRecords("COUNT", "counts", 1, 9, 4, 7)]
    scene.leave_out(RAISED)
    assert scene.left_out.totals() == {"moved to the dead-letter topic dead": 1, "dropped": 2}


def test_a_task_that_comes_back_goes_on_counting(scene: Scene):
    for _ in range(3):
        scene.leave_out(NO_KEY)
    assert scene.left_out.totals() == {"dropped": 3}


def test_totals_are_by_what_became_of_them(scene: Scene):
    scene.leave_out(NO_KEY, 2)
    scene.leave_out(RAISED, 3)
    scene.leave_out(Kind(Fate.SKIPPED, Step("MAP"), "processing failed with ValueError", "in"))
    totals = scene.left_out.totals()
    assert totals == {"moved to the dead-letter topic dead": 3, "skipped": 1, "dropped": 2}
    assert totals_text(totals) == "left out: 3 moved to the dead-letter topic dead, 1 skipped, 2 dropped"


def test_a_record_that_two_steps_drop_is_one_record(scene: Scene):
    counts = scene.left_out.of_task(TaskId(0, 0))
    counts.add(NO_KEY, again=False)
    counts.add(NO_KEY._replace(step=Step("SUM")), again=True)
    assert scene.left_out.totals() == {"dropped": 1}


def test_the_summary_says_for_each_step_how_late_its_records_were(scene: Scene):
    scene.read(10)
    scene.come_late(57_000, 47_001, records=2)
    assert totals_text(scene.left_out.totals(), scene.left_out.late()) == (
        "left out: 2 dropped; too late for step COUNT (store counts): 2 of 10 records (20 %), up to 57 s late; "
        "a grace of at least 47.001 s would have kept them"
    )


def test_nothing_is_nothing(scene: Scene):
    scene.left_out.log_counts(0, 0)
    assert (scene.messages(), totals_text(scene.left_out.totals(), scene.left_out.late())) == ([], "")


def test_the_last_failures_are_remembered_and_no_more_of_their_text_than_can_be_shown(scene: Scene):
    for n in range(100):
        scene.left_out.remember(LeftOutRecord(n, RAISED, TaskId(0, 0), f"in-0 offset {n}", "x" * 10_000))
    last = scene.left_out.last()
    assert [one.at_ms for one in last] == list(range(99, 79, -1))
    assert {len(one.error) for one in last} == {300}


def test_kinds_are_counted_over_all_tasks(scene: Scene):
    scene.leave_out(RAISED, 2)
    scene.leave_out(RAISED, 3, TaskId(0, 1))
    scene.leave_out(NO_KEY)
    assert scene.left_out.kinds() == {RAISED: 5, NO_KEY: 1}
