"""An assignor of the program's own decides, and is told what is wrong with its assignment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pystreams.config import StreamsConfig
from pystreams.errors import ConfigError, TopologyError
from pystreams.ids import TaskId
from pystreams.runtime.group.own_assignor import OwnAssignor, own_assignor
from pystreams.runtime.group.situation import AssignorSettings, Situation, TaskFacts
from pystreams.task_assignor import ApplicationState, TaskAssignment, TaskInfo
from tests.unit.runtime.group.assignor_kit import members_of, tasks_of

T0, T1, T2 = TASKS = tasks_of(3)
INFOS = {task: TaskInfo(task, frozenset(), ("store",), True) for task in TASKS}
CONFIG = StreamsConfig.of(application_id="app")


def situation(*processes: int, replicable: frozenset[TaskId] = frozenset(TASKS)) -> Situation:
    facts = TaskFacts(frozenset(TASKS), frozenset(TASKS), replicable, dict.fromkeys(TASKS, 5))
    return Situation(facts, members_of(*processes), AssignorSettings())


def asked(given: object) -> OwnAssignor:
    own = own_assignor(given, INFOS, CONFIG)
    assert own is not None
    return own


def everything_to_the_first(state: ApplicationState) -> TaskAssignment:
    first = min(state.processes)
    return TaskAssignment(
        {process: list(state.tasks) if process == first else [] for process in state.processes},
        {process: list(state.tasks) for process in state.processes if process != first},
        follow_up_ms=70_000,
    )


class AsMethod:
    def assign(self, state: ApplicationState) -> TaskAssignment:
        return everything_to_the_first(state)


@pytest.mark.parametrize(
    "given", [everything_to_the_first, AsMethod, AsMethod()], ids=["function", "class", "object"]
)
def test_its_tasks_are_spread_over_the_threads_of_each_process(given: object) -> None:
    assignment, follow_up_ms = asked(given)(situation(2, 1))
    assert sorted(map(len, (assignment.active["p0-t0"], assignment.active["p0-t1"]))) == [1, 2]
    assert assignment.active["p1-t0"] == []
    assert assignment.standbys["p1-t0"] == TASKS
    assert follow_up_ms == 70_000


def test_it_gets_processes_and_tasks() -> None:
    seen: list[ApplicationState] = []

    def note(state: ApplicationState) -> TaskAssignment:
        seen.append(state)
        return everything_to_the_first(state)

    asked(note)(situation(2, 1))
    (state,) = seen
    assert {name: process.threads for name, process in state.processes.items()} == {"p0": 2, "p1": 1}
    assert state.processes["p1"].lags == dict.fromkeys(TASKS, 5)
    assert state.tasks[T0].stores == ("store",)
    assert state.config is CONFIG


@pytest.mark.parametrize(
    "given,why",
    [
        (TaskAssignment({"p0": TASKS, "p1": [], "px": []}), "unknown processes: px"),
        (TaskAssignment({"p0": TASKS}), "no tasks, not even an empty collection, for processes: p1"),
        (TaskAssignment({"p0": [*TASKS, TaskId(7, 0)], "p1": []}), "unknown tasks: 7_0"),
        (TaskAssignment({"p0": TASKS, "p1": [T1]}), "tasks that are active more than once: 0_1"),
        (TaskAssignment({"p0": [T0], "p1": [T1]}), "tasks that are active nowhere: 0_2"),
        (TaskAssignment({"p0": TASKS, "p1": []}, {"p1": [T2]}), "standbys of tasks without changelogs: 0_2"),
        (
            TaskAssignment({"p0": TASKS, "p1": []}, {"p0": [T0]}),
            "standbys in the process of their active task: 0_0",
        ),
        ({"p0": TASKS}, "it returned dict, not TaskAssignment"),
    ],
)
def test_an_invalid_assignment_is_refused_with_what_is_wrong(given: object, why: str) -> None:
    answer: Callable[[ApplicationState], object] = lambda _: given  # noqa: E731
    with pytest.raises(TopologyError) as caught:
        asked(answer)(situation(1, 1, replicable=frozenset({T0, T1})))
    assert caught.value.what == "the program's own assignor gives an invalid assignment"
    assert why in caught.value.why


def test_an_assignor_that_raises_is_named() -> None:
    def fails(state: ApplicationState) -> TaskAssignment:
        raise ValueError("out of luck")

    with pytest.raises(TopologyError) as caught:
        asked(fails)(situation(1))
    assert "out of luck" in caught.value.why
    assert "task_assignor_class" in caught.value.where


def test_something_that_cannot_assign_is_refused() -> None:
    with pytest.raises(ConfigError, match="task_assignor_class cannot be 5"):
        own_assignor(5, INFOS, CONFIG)
