"""What scenarios may ask for that pystreams does not have yet.

An operator that is added leaves this list; a scenario that needs none of it must agree with Kafka Streams.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

_STORES = {"versioned": "versioned stores"}


def missing_operators(scenario: Json) -> list[str]:
    """The names of what the scenario needs and pystreams lacks, sorted."""
    found = set(_of_config(scenario.get("config", {})))
    kinds: dict[str, str] = {}
    for step in scenario["steps"]:
        found.update(_of_step(step, kinds))
        _note_results(step, kinds)
    return sorted(found)


def pruned(scenario: Json) -> Json | None:
    """The scenario without the settings and steps that need a missing operator and without what follows from them;
    None if nothing is left that writes to a topic."""
    kinds: dict[str, str] = {}
    stores: set[str] = set()
    steps: list[Json] = []
    for step in scenario["steps"]:
        inputs = [
            place[f] for place in (step, *step.get("groups", ())) for f in ("from", "with") if f in place
        ]
        if not kinds.keys() >= set(inputs) or not stores.issuperset(step.get("stores", ())):
            continue
        if any(_of_step(step, kinds)):
            continue
        steps.append(step)
        _note_results(step, kinds)
        if step["op"] == "add_store":
            stores.add(step["store"])
        if step["op"] == "global_table":
            stores.add((step.get("materialized") or {}).get("store", ""))
    if not any(step["op"] == "to" for step in steps):
        return None
    sources = [step for step in steps if step["op"] != "to"]
    topics = {topic for step in sources for topic in (*step.get("topics", ()), step.get("topic"))}
    drive = [entry for entry in scenario["drive"] if "pipe" not in entry or entry["pipe"] in topics]
    config = {k: v for k, v in scenario["config"].items() if not any(_of_config({k: v}))}
    return {**scenario, "config": config, "steps": steps, "drive": drive}


def _note_results(step: Json, kinds: dict[str, str]) -> None:
    if "id" in step:
        kinds[step["id"]] = _kind(step, kinds)
    for branch in (*step.get("branches", ()), step.get("default", {})):
        if "id" in branch:
            kinds[branch["id"]] = "stream"


def _of_config(config: Json) -> Iterator[str]:
    if config.get("store_format", "DEFAULT") != "DEFAULT":
        yield "headers in stores"


def _of_step(step: Json, kinds: dict[str, str]) -> Iterator[str]:
    op = step["op"]
    if op in ("join", "left_join", "outer_join"):
        yield from _of_join(step)
    if op == "add_store" and step.get("type") in _STORES:
        yield _STORES[step["type"]]
    materialized = step.get("materialized") or {}
    if "versioned" in materialized:
        yield "versioned stores"
    if materialized.get("type", "").startswith("lru:"):
        yield "LRU stores"


def _of_join(step: Json) -> Iterator[str]:
    if "grace" in step:
        yield "stream-table joins with grace"


def _kind(step: Json, kinds: dict[str, str]) -> str:
    op = step["op"]
    if op in ("table", "to_table", "count", "reduce", "aggregate", "suppress", "transform_values"):
        return "table"
    if op in ("fk_join", "fk_left_join"):
        return "table"
    if op == "global_table":
        return "global"
    if op in ("filter", "filter_not", "map_values", "join", "left_join", "outer_join"):
        return kinds.get(step["from"], "stream")
    return "stream"
