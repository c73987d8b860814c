"""Random scenarios reach what the oracle's own generator does not, and are the same for the same seed."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.conformance import fuzz, golden
from tests.conformance.runner import run
from tests.conformance.variation import varied

Json = Any

SEEDS = 30
REACHED = {
    "lru",
    "versioned",
    "versioned with segments",
    "grace",
    "retention",
    "retain_duplicates",
    "max_bytes",
    "full shut_down",
    "unlimited",
    "session close",
    "sliding close",
    "emit update",
    "cogroup",
    "global lookup",
    "route",
    "pattern",
    "topics by record",
    "invalid time",
    "store_format",
    "explicit_names",
    "processing_handler",
    "deserialization_handler",
    "optimize in part",
    "dump",
    "wall clock",
}


def scenarios() -> Iterator[tuple[Json, Json]]:
    for case in list(golden.cases())[::5]:
        for seed in range(SEEDS):
            yield case.scenario, varied(case.scenario, f"{case.name} {seed}")


def features(scenario: Json) -> Iterator[str]:
    config = scenario["config"]
    yield from (name for name in config if name != "optimize")
    if isinstance(config.get("optimize"), str):
        yield "optimize in part"
    for step in scenario["steps"]:
        yield from features_of_step(step)
    for entry in scenario["drive"]:
        yield from (name for name in entry if name == "dump")
        yield from (("invalid time",) if entry.get("ts", 0) < 0 else ())
        yield from (("wall clock",) if "advance_wall_ms" in entry else ())


def features_of_step(step: Json) -> Iterator[str]:
    yield step["op"]
    yield from (
        name for name in ("grace", "retention", "retain_duplicates", "max_bytes", "pattern") if step.get(name)
    )
    store = step.get("materialized") or {}
    yield store.get("type", "").partition(":")[0]
    if "versioned" in store:
        yield "versioned with segments" if "segment" in store["versioned"] else "versioned"
    if step.get("full"):
        yield f"full {step['full']}"
    windows = step.get("windows", {}).get("type")
    yield from (windows or "", f"{windows} {step.get('emit')}", f"emit {step.get('emit')}")
    yield step.get("processor", "").partition(":")[0]
    if step.get("global_store"):
        yield "global lookup"
    if "topic_fn" in step:
        yield "topics by record"


def test_every_kind_of_operator_store_and_setting_is_reached() -> None:
    before = {feature for case in golden.cases() for feature in features(case.scenario)}
    reached = {feature for _, scenario in scenarios() for feature in features(scenario)}
    assert reached >= REACHED
    assert not before >= REACHED


def test_the_same_seed_gives_the_same_and_leaves_the_given_scenario_as_it_was() -> None:
    case = next(golden.cases())
    kept = copy.deepcopy(case.scenario)
    made = [varied(case.scenario, str(seed)) for seed in range(SEEDS)]
    assert made == [varied(case.scenario, str(seed)) for seed in range(SEEDS)]
    assert case.scenario == kept
    assert len({str(one) for one in made}) == SEEDS


def test_most_of_them_run() -> None:
    some = [scenario for _, scenario in scenarios()][::50]
    refused = [one for one in some if (run(one)["error"] or {}).get("phase") in {"config", "build"}]
    assert len(refused) < len(some) / 2


def test_a_mixed_run_has_its_share_of_each_profile(monkeypatch: Any) -> None:
    asked: list[tuple[int, int, str]] = []

    def generated(seed: int, count: int, profile: str = "all") -> list[Json]:
        asked.append((seed, count, profile))
        return [{"name": "", "config": {}, "steps": [], "drive": []} for _ in range(count)]

    monkeypatch.setattr(fuzz.oracle, "fuzz_scenarios", generated)
    for count in (7, 300, 2_000):
        asked.clear()
        made = fuzz.scenarios(5, count, "mixed")
        assert len(made) == len({one["name"] for one in made}) == count
        assert sum(number for _, number, _ in asked) == count
    assert [profile for *_, profile in asked] == [*fuzz.MIXED][:-1] + ["all"]
    # What is varied is not what is there as it is.
    assert asked[0][0] == 5 != asked[-1][0]
