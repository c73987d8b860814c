"""Whatever runs at once and wherever it stops, a task has what its records give, one after the other.

A few topologies; ``python -m tests.live.random_topologies`` runs as many as wanted.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pystreams.engine.stream_task import StreamTask
from pystreams.ids import TaskId
from pystreams.state.task_stores import TaskStores
from tests.live.random_topologies.recording import Flush, Read, Recorder
from tests.live.random_topologies.run import check
from tests.live.random_topologies.trials import Trial, fit, fuzzed, recorded, trial

pytestmark = pytest.mark.live

SEED = 5
TASK = TaskId(0, 1)


def _recorded() -> list[Trial]:
    return random.Random(SEED).sample(list(recorded(SEED)), 8)


@pytest.mark.parametrize("one", _recorded(), ids=lambda one: f"{one.name}-{one.middle}")
def test_recorded_topologies_have_what_each_of_their_tasks_computes_alone(one: Trial, tmp_path: Path) -> None:
    recorder = check(one, tmp_path)
    assert recorder.records


@pytest.mark.oracle
@pytest.mark.slow
def test_random_topologies_have_what_each_of_their_tasks_computes_alone(tmp_path: Path) -> None:
    for number, one in enumerate(fuzzed(SEED, 4)):
        (tmp_path / str(number)).mkdir()
        check(one, tmp_path / str(number))


SUMS: Any = {
    "name": "sums",
    "config": {},
    "steps": [
        {"id": "s", "op": "stream", "topics": ["in"]},
        {"id": "g", "op": "group_by_key", "from": "s"},
        {"id": "w", "op": "windowed_by", "from": "g", "windows": {"type": "tumbling", "size": 10}},
        {"id": "t", "op": "aggregate", "from": "w", "fn": "cat:+", "materialized": {"store": "T"}},
        {"id": "out", "op": "to_stream", "from": "t"},
        {"op": "to", "from": "out", "topic": "out"},
    ],
    "drive": [
        {"pipe": "in", "key": key, "value": f"{key}{at}", "ts": 7 * at} for at in range(8) for key in "abcd"
    ],
}


def of_middle(middle: str) -> Trial:
    """The sums with their end in the middle; half of the records come late."""
    one = next(t for seed in range(100) if (t := trial(SUMS, seed)).middle == middle and not t.cached)
    history = {
        p: sorted(lines, key=lambda line: (line.timestamp % 3, line.timestamp))
        for p, lines in one.history.items()
    }
    return one._replace(history=history, half={p: len(lines) // 2 for p, lines in history.items()}, moment=20)


@pytest.mark.parametrize("middle", ["close", "kill", "join"])
def test_late_records_are_late_whatever_happens_in_the_middle(middle: str, tmp_path: Path) -> None:
    check(of_middle(middle), tmp_path)


def without_memory(start: Any) -> Any:
    """What operators remember is lost on a restart."""
    return lambda task, committed, _, *more: start(task, committed, {}, *more)


def without_state(_: Any) -> Any:
    """Nothing is restored from changelogs."""
    return lambda state, store, batch: None


@pytest.mark.parametrize(
    ("of", "method", "broken"),
    [(StreamTask, "start", without_memory), (TaskStores, "restore", without_state)],
    ids=["without memory", "without state"],
)
def test_a_fault_behind_a_restart_is_found(
    of: type, method: str, broken: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of, method, broken(getattr(of, method)))
    with pytest.raises(AssertionError, match=r"(stores|query|changelog|topic) .*"):
        check(of_middle("close")._replace(wiped=True), tmp_path)


# What a recorder forgets


def told(*events: tuple[Any, ...]) -> list[Read | Flush]:
    recorder = Recorder()
    for kind, *rest in events:
        recorder.tell(TASK, kind, *rest)
    return recorder.events()[TASK]


def test_what_was_not_committed_is_forgotten_at_the_next_start() -> None:
    before = [("start", {"a": 0}), ("reads", "a", [0, 1]), ("flush",), ("reads", "a", [2]), ("flush",)]
    assert told(*before, ("start", {"a": 3})) == told(*before)
    assert told(*before, ("start", {"a": 2})) == [Read("a", 0), Read("a", 1), Flush()]
    assert told(*before, ("start", {"a": 0})) == []
    assert told(*before, ("start", {})) == []


def test_offsets_that_hold_no_records_count_as_read() -> None:
    before = [("reads", "a", [0, 3]), ("flush",), ("flush",)]
    assert told(*before, ("start", {"a": 7, "b": 2})) == [Read("a", 0), Read("a", 3), Flush(), Flush()]


def test_a_start_where_nothing_was_flushed_is_no_commit() -> None:
    before = [("reads", "a", [0, 1]), ("reads", "b", [0]), ("flush",)]
    with pytest.raises(AssertionError, match="never flushed"):
        told(*before, ("start", {"a": 1, "b": 1}))
    with pytest.raises(AssertionError, match="never flushed"):
        told(*before, ("start", {"a": 2, "b": 0}))


@pytest.mark.parametrize(
    ("step", "fits"),
    [
        ({"op": "process", "processor": "drop_headers", "from": "s"}, True),
        ({"op": "process", "processor": "tick:stream:5", "from": "s"}, False),
        ({"op": "process", "processor": "timer:wall:5", "from": "s"}, False),
        ({"op": "stream", "pattern": "other"}, False),
        ({"op": "to", "topic_fn": "key", "from": "s"}, False),
        ({"op": "suppress", "from": "t", "until": "window_closes"}, True),
        ({"op": "suppress", "from": "t", "until": "window_closes", "max_records": 1000}, False),
        ({"op": "suppress", "from": "t", "until": "time_limit", "wait": 1, "max_records": 1}, True),
    ],
)
def test_what_depends_on_a_start_or_on_the_wall_clock_is_left_out(step: Any, fits: bool) -> None:
    assert fit({**SUMS, "steps": [*SUMS["steps"], {"id": "more", **step}]}) is fits
