"""Scenarios in which pystreams differs from Kafka Streams on purpose: each has a line in docs/differences.md."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def deliberate_difference(scenario: Json) -> str | None:
    """Why this scenario may differ from Kafka Streams; None: it must not."""
    return (
        _deleted_on_both_sides(scenario)
        or _joined_cogroup_of_windows(scenario)
        or _changed_before_the_answer(scenario)
    )


def _deleted_on_both_sides(scenario: Json) -> str | None:
    """An inner join of tables that one record can delete from both: behind a cache, Kafka Streams keeps the row."""
    sources: dict[str, frozenset[str]] = {}
    tables: set[str] = set()
    for step in scenario["steps"]:
        above = [step[field] for field in ("from", "with") if field in step]
        above += [group["from"] for group in step.get("groups", ())]
        of_step = frozenset(step.get("topics", ())) | frozenset(step[f] for f in ("topic",) if f in step)
        if step["op"] == "join" and tables.issuperset(above):
            left, right = (sources[id] for id in above)
            if left & right:
                return "a row deleted from both sides of a join of tables at once"
        for result in (step, *step.get("branches", ()), step.get("default", {})):
            if "id" in result:
                sources[result["id"]] = of_step.union(*(sources.get(id, frozenset()) for id in above))
                if step["op"] in _TABLES or tables.intersection(above):
                    tables.add(result["id"])
    return None


def _joined_cogroup_of_windows(scenario: Json) -> str | None:
    """A join with the table of a windowed cogroup: Kafka Streams takes its store for one without windows, and fails."""
    kinds: dict[str, str] = {}
    for step in scenario["steps"]:
        above = [kinds.get(step.get(field), "") for field in ("from", "with")]
        if step["op"].endswith("join") and "table" in above:
            return "a join with the table of a windowed cogroup"
        aggregated = step["op"] == "aggregate" and above[0] == "windowed cogroup"
        derived = step["op"] in _ROW_BY_ROW and above[0] == "table" and "materialized" not in step
        if step["op"] == "cogroup":
            kinds[step["id"]] = "cogroup"
        elif step["op"] == "windowed_by" and above[0] == "cogroup":
            kinds[step["id"]] = "windowed cogroup"
        elif aggregated or derived:
            kinds[step["id"]] = "table"
    return None


def _changed_before_the_answer(scenario: Json) -> str | None:
    """An inner foreign-key join of a table whose rows one record can change several times: Kafka Streams may keep a
    result that is gone."""
    read: set[str] = set()
    for step in scenario["steps"]:
        if step["op"] == "table" or (step["op"] in _ROW_BY_ROW and step["from"] in read):
            read.add(step["id"])
        if step["op"] == "fk_join" and step["from"] not in read:
            return "a row of a foreign-key join that changes again before it is answered"
    return None


_ROW_BY_ROW = frozenset({"filter", "filter_not", "map_values", "transform_values"})
_TABLES = frozenset({"table", "to_table", "count", "reduce", "aggregate"})
