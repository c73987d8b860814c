"""Over one partition, a backfill gives what the test driver gives record by record: outputs and state, in bytes.

Sinks are compared as sequences, changelogs after compaction. Where one internal topic is all that a task reads, or only
external topics, live has no other result either. Caches are off, as every record commits in the test driver.
"""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.state.formats import split_window_key
from pystreams.topology.topology import Topology
from tests.backfill.kit import Backfill, Driven, History, driven, memory, single
from tests.backfill.programs import PROGRAMS, history
from tests.conformance import golden
from tests.conformance.scenarios import line_of, settings_of, topology_of
from tests.live.support import Line


def runnable(case: golden.Case) -> bool:
    """Piped records alone, which end well. A foreign-key join visits a sub-topology twice, a global table is whole from
    the beginning, and the changelog of a versioned store is another one."""
    others = ("fk_join", "fk_left_join", "global_table")
    return (
        all(step["op"] not in others for step in case.scenario["steps"])
        and not any("versioned" in (step.get("materialized") or {}) for step in case.scenario["steps"])
        and not case.result.get("error")
        and all("pipe" in entry or "dump" in entry for entry in case.scenario["drive"])
    )


def history_of(scenario: Any) -> dict[str, list[list[Line]]]:
    found: dict[str, list[list[Line]]] = {}
    for entry in scenario["drive"]:
        if "pipe" in entry:
            found.setdefault(entry["pipe"], [[]])[0].append(line_of(entry))
    return found


def visible(found: Driven, backfill: Backfill) -> Driven:
    """Without what a store of windows hides because it has expired, and without stores that have no changelog; sinks
    that several sub-topologies write to as sets, because nothing orders the two."""
    specs = {spec.name: spec for spec in backfill.loaded.built.stores}
    changelogs = {}
    for store, entries in found.changelogs.items():
        retention_ms = specs[store].retention_ms
        if not specs[store].logged:
            continue
        if retention_ms:
            observed = max((split_window_key(entry.key)[1] for entry in entries), default=0)
            entries = [e for e in entries if split_window_key(e.key)[1] > observed - retention_ms]
        changelogs[store] = entries
    writers = [topic for one in backfill.plan.slices for topic in one.sinks]
    sinks = {
        topic: sorted(records, key=repr) if writers.count(topic) > 1 else records
        for topic, records in found.sinks.items()
    }
    return Driven(sinks, changelogs, found.dropped)


def compare(program: Any, history: History, folder: Any, **settings: Any) -> Driven:
    settings = {"statestore_cache_max_bytes": 0, **settings}
    backfill = Backfill(program(), memory(history), folder, commit_records=7, **settings)
    found = visible(single(backfill.run()), backfill)
    expected = visible(driven(program(), history, **settings), backfill)
    assert found == expected
    return found


@pytest.mark.parametrize("case", [c for c in golden.cases() if runnable(c)], ids=lambda case: case.name)
def test_recorded_scenarios(case: golden.Case, tmp_path: Any) -> None:
    scenario = case.scenario
    settings = settings_of(scenario)
    history = history_of(scenario)

    def program() -> Topology:
        return topology_of(scenario)

    built = program().build(settings["application_id"], default_key_serde=settings["default_key_serde"])
    if any(topic.partitions not in {None, 1} for topic in built.internal_topics.values()):
        pytest.skip("the test driver has one partition of every topic, this scenario asks for more")
    for sub in built.subtopologies:
        for topic in sub.source_topics:
            if topic not in built.internal_topics:
                history.setdefault(topic, [[]])
    compare(program, history, tmp_path / "staging", **settings)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "name",
    [
        "word count",
        "windowed sum",
        "two repartitions",
        "punctuated",
        "joined streams",
        "declared aggregates",
    ],
)
def test_programs_over_random_histories(name: str, seed: int, tmp_path: Any) -> None:
    found = compare(PROGRAMS[name], history(name, seed, partitions=1), tmp_path / "staging")
    assert all(found.sinks.values())
    assert all(found.changelogs.values())
