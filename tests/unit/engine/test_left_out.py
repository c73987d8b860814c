"""Records that are left out: the first of a kind is told in full, the others are counted, none is forgotten."""

from __future__ import annotations

import pytest

from pystreams.engine.failures.left_out import LOG_INTERVAL_MS, Fate, Kind, LeftOut, totals_text
from pystreams.ids import TaskId

LATE = Kind(Fate.DROPPED, "COUNT", "window closed", "in")
RAISED = Kind(Fate.DEAD_LETTER, "MAP", "processing failed with ValueError", "in")


class Scene:
    """A client with tasks that leave records out."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.left_out = LeftOut("dead")
        self._caplog = caplog

    def leave_out(self, kind: Kind, times: int = 1, task: TaskId = TaskId(0, 0)) -> None:  # noqa: B008 - a tuple
        counts = self.left_out.of_task(task)
        for _ in range(times):
            counts[kind] = counts.get(kind, 0) + 1
            if counts[kind] == 1:
                self.left_out.log_first(kind, task, "in-0 offset 5", "a cause")

    def messages(self) -> list[str]:
        """What was logged since the last time."""
        messages = [record.getMessage() for record in self._caplog.records]
        self._caplog.clear()
        return messages


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> Scene:
    return Scene(caplog)


def test_the_first_one_is_told_in_full_with_where_it_went(scene: Scene):
    scene.leave_out(RAISED, 3)
    (messages,) = scene.messages()
    assert messages == (
        "a record was moved to the dead-letter topic dead: task 0_0, step MAP, in-0 offset 5:"
        " processing failed with ValueError: a cause; more of this kind are counted"
    )


def test_the_first_one_of_another_task_is_not_told_again(scene: Scene):
    for partition in range(64):
        scene.leave_out(RAISED, task=TaskId(0, partition))
    assert len(scene.messages()) == 1
    scene.left_out.log_counts(0, 0)
    (messages,) = scene.messages()
    assert messages.startswith(
        "64 records so far were moved to the dead-letter topic dead (topic in, step MAP)"
    )


def test_more_are_told_together_every_30_s_and_only_if_there_are_more(scene: Scene):
    scene.left_out.log_counts(0)
    scene.leave_out(LATE, 1_000)
    scene.leave_out(RAISED, 1)
    scene.messages()
    scene.left_out.log_counts(LOG_INTERVAL_MS - 1)
    assert scene.messages() == []
    scene.left_out.log_counts(LOG_INTERVAL_MS)
    assert scene.messages() == ["1,000 records so far were dropped (topic in, step COUNT): window closed"]
    scene.left_out.log_counts(2 * LOG_INTERVAL_MS)
    assert scene.messages() == []
    scene.leave_out(LATE)
    scene.left_out.log_counts(3 * LOG_INTERVAL_MS)
    assert scene.messages() == ["1,001 records so far were dropped (topic in, step COUNT): window closed"]


def test_a_task_that_comes_back_goes_on_counting(scene: Scene):
    for _ in range(3):
        scene.leave_out(LATE)
    assert scene.left_out.totals() == {"dropped": 3}


def test_totals_are_by_what_became_of_them(scene: Scene):
    scene.leave_out(LATE, 2)
    scene.leave_out(RAISED, 3)
    scene.leave_out(Kind(Fate.SKIPPED, "MAP", "processing failed with ValueError", "in"))
    totals = scene.left_out.totals()
    assert totals == {"moved to the dead-letter topic dead": 3, "skipped": 1, "dropped": 2}
    assert totals_text(totals) == "left out: 3 moved to the dead-letter topic dead, 1 skipped, 2 dropped"


def test_nothing_is_nothing(scene: Scene):
    scene.left_out.log_counts(0, 0)
    assert (scene.messages(), totals_text(scene.left_out.totals())) == ([], "")
