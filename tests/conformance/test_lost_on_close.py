"""Results may differ from Kafka Streams' by windows that it has lost, and by nothing else."""

from __future__ import annotations

from copy import deepcopy
from itertools import product
from typing import Any

import pytest

from tests.conformance import golden, oracle
from tests.conformance.compare import difference
from tests.conformance.lost_on_close import check, lost_on_close
from tests.conformance.runner import run

#: One of its windows is lost.
CASE = next(case for case in golden.cases() if case.name == "emit_close/sliding")


def test_a_lost_window_is_excused() -> None:
    assert difference(CASE.result, run(CASE.scenario)) is not None
    assert lost_on_close(CASE.scenario, CASE.result) is not None


def other_value(records: list[Any]) -> None:
    records[0]["value"] += 1


def one_less(records: list[Any]) -> None:
    records.pop(0)


def other_order(records: list[Any]) -> None:
    records.reverse()


@pytest.mark.parametrize("change", [other_value, one_less, other_order])
def test_nothing_else_is(change: Any) -> None:
    result = deepcopy(CASE.result)
    change(result["outputs"]["out"])
    assert lost_on_close(CASE.scenario, result) is None


def test_windows_that_are_emitted_with_each_change_are_not() -> None:
    steps = [
        {name: value for name, value in step.items() if name != "emit"} for step in CASE.scenario["steps"]
    ]
    assert lost_on_close({**CASE.scenario, "steps": steps}, CASE.result) is None


@pytest.mark.parametrize("emitted", [[1, 7], [7, 8, 9], [9, 7], [7, 8, 8, 9]])
def test_what_is_emitted_must_be_what_is_shown_and_what_has_expired(emitted: list[int]) -> None:
    def row(time: int) -> tuple[int, bytes]:
        return time, b"%d" % time

    def outcome(times: list[int]) -> None:
        check(map(row, [7, 9]), map(row, times), lambda time: time < 5)

    outcome([1, 7, 9])
    with pytest.raises(AssertionError):
        outcome(emitted)


WINDOWS: list[Any] = [
    {"type": "tumbling", "size": 10},
    {"type": "hopping", "size": 10, "advance": 5, "grace": 3},
    {"type": "sliding", "diff": 10},
    {"type": "session", "gap": 5},
]
LOST = {
    f"{windows['type']}-{kind}": {
        "name": "lost",
        "config": {"app_id": "t", "cache_max_bytes": 0},
        "steps": [
            {"id": "s", "op": "stream", "topics": ["in"]},
            {"id": "g", "op": "group_by_key", "from": "s"},
            {"id": "w", "op": "windowed_by", "from": "g", "windows": windows, "emit": "close"},
            {"id": "c", "op": "count", "from": "w", "materialized": {"store": "C", "type": kind}},
            {"id": "o", "op": "to_stream", "from": "c"},
            {"op": "to", "from": "o", "topic": "out"},
        ],
        "drive": [{"pipe": "in", "key": "a", "value": "x", "ts": time} for time in (20, 200_000, 10**9)],
    }
    for windows, kind in product(WINDOWS, ["rocksdb", "in_memory"])
}


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What Kafka Streams makes of each, asked at once."""
    return dict(zip(LOST, oracle.ask(list(LOST.values())), strict=True))


@pytest.mark.oracle
@pytest.mark.parametrize("name", LOST)
def test_kafka_streams_loses_windows_without_a_cache(name: str, answers: dict[str, Any]) -> None:
    theirs, ours = answers[name], run(LOST[name])
    assert theirs["error"] is None
    kept, lost = ours["outputs"]["out"], theirs["outputs"]["out"]
    assert len(kept) > len(lost)
    assert [one for one in kept if one in lost] == lost
    assert lost_on_close(LOST[name], theirs) is not None
