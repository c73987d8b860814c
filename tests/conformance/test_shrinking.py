"""What differs is made small, kept with the true result, and run for ever after."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import fuzz, golden, vocabulary
from tests.conformance.compare import difference
from tests.conformance.progress import shown
from tests.conformance.runner import run
from tests.conformance.shrink import shrink
from tests.conformance.test_golden import test_gives_what_kafka_streams_gives as check_golden

Json = Any


def records(*entries: str) -> list[Json]:
    """Of ``topic key value``, a millisecond apart."""
    split = (entry.split() for entry in entries)
    return [
        {"pipe": t, "key": k, "value": v, "ts": at, "headers": [["h", "1"]]}
        for at, (t, k, v) in enumerate(split)
    ]


@pytest.fixture
def scenario() -> Json:
    """One step of many has the fault, and two records of many show it."""
    return {
        "name": "all/1/2",
        "config": {"app_id": "t", "optimize": True, "cache_max_bytes": 400, "store_type": "in_memory"},
        "steps": [
            {"op": "add_store", "store": "unused"},
            {"id": "s1", "op": "stream", "topics": ["in", "also"]},
            {"id": "s2", "op": "peek", "from": "s1", "name": "LOOK"},
            {"id": "s3", "op": "split", "from": "s2", "branches": [{"id": "b1", "fn": "true"}],
             "default": {"id": "b2"}},
            {"id": "s4", "op": "merge", "from": "b1", "with": "b2"},
            {"id": "s5", "op": "group_by_key", "from": "s4"},
            {"id": "t1", "op": "reduce", "from": "s5", "fn": "max", "materialized": {"store": "M", "cached": True}},
            {"id": "s6", "op": "to_stream", "from": "t1"},
            {"op": "to", "from": "s6", "topic": "out"},
            {"id": "t2", "op": "table", "topic": "other"},
            {"id": "s7", "op": "to_stream", "from": "t2"},
            {"op": "to", "from": "s7", "topic": "out2"},
        ],
        "drive": records(
            *("in a x", "other a x", "in b yy", "in a bb", "also c c", "in b abc", "in a aaa", "in d long")
        ),
    }  # fmt: skip


def longest(_: str) -> vocabulary.Function:
    """What ``max`` is where there is the fault."""
    return lambda k, g, v: v if len(vocabulary.render(v)) >= len(vocabulary.render(g)) else g


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault is in pystreams alone."""
    monkeypatch.setitem(vocabulary._AGGREGATORS, "max", longest)


def steps_of(scenario: Json) -> list[str]:
    return [step["op"] for step in scenario["steps"]]


def test_a_fault_is_shown_by_the_fewest_steps_and_records(
    scenario: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = vocabulary._AGGREGATORS["max"]
    whole = copy.deepcopy(scenario)

    def theirs(asked: Sequence[Json]) -> list[Json]:
        monkeypatch.setitem(vocabulary._AGGREGATORS, "max", sound)
        return [run(one) for one in asked]

    def ours(one: Json) -> Json:
        monkeypatch.setitem(vocabulary._AGGREGATORS, "max", longest)
        return run(one)

    before = difference(theirs([scenario])[0], ours(scenario))
    assert before is not None
    small = shrink(scenario, fuzz.first_that_differs(theirs, ours, difference, before))
    assert scenario == whole
    assert steps_of(small) == ["stream", "group_by_key", "reduce", "to_stream", "to"]
    [one, two] = small["drive"]
    assert (
        (one["key"], one.keys()) == (two["key"], two.keys()) == (one["key"], {"pipe", "key", "value", "ts"})
    )
    assert small["config"] == {}
    assert small["steps"][2] == {"id": "t1", "op": "reduce", "from": "s5", "fn": "max"}


def test_what_is_small_already_stays_as_it_is(scenario: Json) -> None:
    asked: list[Json] = []

    def none(candidates: Sequence[Json]) -> None:
        asked.extend(candidates)

    assert shrink(scenario, none) is scenario
    assert all(one != scenario for one in asked)


def test_it_ends_after_so_many_candidates(scenario: Json) -> None:
    asked: list[Json] = []

    def last(candidates: Sequence[Json]) -> int:
        asked.extend(candidates)
        return len(candidates) - 1

    shrink(scenario, last, 20)
    assert 20 <= len(asked) < 40


def test_another_difference_is_not_taken_for_the_same() -> None:
    told = iter(["stores.M: expected 1, got 2", "outputs.out[0]: expected 1, got 2"])
    first = fuzz.first_that_differs(
        list, lambda one: one, lambda theirs, ours: next(told), "outputs.o: expected"
    )
    empty: Json = {"config": {}, "steps": [], "drive": []}
    assert first([empty, empty]) == 1
    refused = 'error: expected null, got {"phase": "build"}'
    accepted = 'error: expected {"phase": "build"}, got null'
    other = fuzz.first_that_differs(list, lambda one: one, lambda theirs, ours: accepted, refused)
    assert other([empty]) is None


@pytest.mark.oracle
@pytest.mark.slow
def test_a_random_scenario_that_differs_is_shrunk_and_kept_with_kafkas_result(
    faulty: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first of the two differs.
    assert fuzz.compare(fuzz.scenarios(4, 6, "windows")[4:], fuzz.Settings(4, 1, tmp_path)) == 1
    kept = list(golden.cases(tmp_path))
    assert kept, capsys.readouterr().out
    for case in kept:
        assert len(case.scenario["steps"]) <= 8
        assert difference(case.result, run(case.scenario)) is not None
    monkeypatch.undo()
    for case in kept:
        check_golden(case)


def test_what_is_kept_is_read_as_it_was(tmp_path: Path, scenario: Json) -> None:
    case = golden.Case(
        {**scenario, "name": "found/all-1-2"}, {"describe": "a\nb\n", "outputs": {"out": []}, "error": None}
    )
    path = golden.keep(case, tmp_path / "found")
    assert path == tmp_path / "found" / "all-1-2.json"
    assert list(golden.cases(tmp_path)) == [case]
    assert max(map(len, path.read_text().splitlines())) <= 200


def test_the_seed_of_a_commit_changes_with_it_and_with_the_modules_where_there_is_none(
    tmp_path: Path,
) -> None:
    assert fuzz.commit_seed() == fuzz.commit_seed()
    (tmp_path / "pystreams").mkdir()
    module = tmp_path / "pystreams" / "one.py"
    module.write_text("a = 1\n")
    before = fuzz.commit_seed(tmp_path)
    module.write_text("a = 2\n")
    assert before != fuzz.commit_seed(tmp_path)


def test_what_is_taken_is_reported_a_few_times(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(shown(range(100), 100, "things")) == list(range(100))
    told = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in told] == [f"things: {n} of 100" for n in (20, 40, 60, 80, 100)]
