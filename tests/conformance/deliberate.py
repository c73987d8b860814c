"""Scenarios in which pystreams differs from Kafka Streams on purpose: each has a line in docs/differences.md."""

from __future__ import annotations

from typing import Any

from tests.conformance.compare import LEVELS
from tests.conformance.lost_on_close import lost_on_close

Json = dict[str, Any]


def meant_difference(scenario: Json, theirs: Json, level: int = LEVELS) -> str | None:
    """Why a scenario differs from what Kafka Streams has made of it; None: for no good reason."""
    return deliberate_difference(scenario) or lost_on_close(scenario, theirs, level)


def deliberate_difference(scenario: Json) -> str | None:
    """Why this scenario may differ from Kafka Streams; None: it must not."""
    return (
        _deleted_on_both_sides(scenario)
        or _joined_cogroup_of_windows(scenario)
        or _changed_before_the_answer(scenario)
        or _bounded_global_table(scenario)
        or _bounded_right_table(scenario)
        or _small_cache_beside_a_global_table(scenario)
        or _windows_of_a_cogroup_of_versions(scenario)
        or _subscriptions_where_the_join_is(scenario)
        or _several_to_wait_for(scenario)
        or _full_where_errors_go_on(scenario)
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


def _bounded_global_table(scenario: Json) -> str | None:
    """A global table of so many rows: in Kafka Streams its cache still has those that are gone."""
    for step in scenario["steps"]:
        store = step.get("materialized") or {}
        if step["op"] == "global_table" and "lru" in store.get("type", "") and store.get("cached", True):
            return "a global table that keeps a number of rows, behind a cache"
    return None


def _bounded_right_table(scenario: Json) -> str | None:
    """A foreign-key join with a table of so many rows: it is read as its cache was flushed, without those that are
    gone; in Kafka Streams the cache still has them."""
    steps = {step["id"]: step for step in scenario["steps"] if "id" in step}
    bounded = [
        step for step in scenario["steps"] if "lru" in (step.get("materialized") or {}).get("type", "")
    ]
    for step in scenario["steps"]:
        if step["op"].startswith("fk_"):
            if bounded and _evicts(scenario):
                return "rows that a small cache has or not, with a foreign-key join that does not read through it"
            right = steps[step["with"]]
            while right["op"] in _ROW_BY_ROW and not right.get("materialized"):
                right = steps[right["from"]]
            store = right.get("materialized") or {}
            if "lru" in store.get("type", "") and store.get("cached", True):
                return "a foreign-key join with a table that keeps a number of rows, behind a cache"
    return None


def _full_where_errors_go_on(scenario: Json) -> str | None:
    """A buffer that is to stop when it is full, where the handler goes on: in Kafka Streams it grows."""
    goes_on = scenario.get("config", {}).get("processing_handler") == "continue"
    bounded = (
        s for s in scenario["steps"] if s["op"] == "suppress" and {"max_records", "max_bytes"} & s.keys()
    )
    stops = any(step["until"] == "window_closes" or step.get("full") == "shut_down" for step in bounded)
    if goes_on and stops:
        return "a full buffer that a handler would let grow"
    return None


def _small_cache_beside_a_global_table(scenario: Json) -> str | None:
    """In Kafka Streams' test driver, global tables take room in the cache that evicts the others' entries."""
    if _evicts(scenario):
        for step in scenario["steps"]:
            if step["op"] == "global_table" and (step.get("materialized") or {}).get("cached", True):
                return "a small cache that Kafka Streams' test driver shares with a global table"
    return None


def _evicts(scenario: Json) -> bool:
    """Whether its cache may be full."""
    return 0 < scenario["config"].get("cache_max_bytes", 0) < _ROOM_FOR_ALL_BYTES


def _windows_of_a_cogroup_of_versions(scenario: Json) -> str | None:
    """A suppress of a windowed cogroup: Kafka Streams looks past it for a table that keeps versions, and refuses it."""
    steps = {step["id"]: step for step in scenario["steps"] if "id" in step}
    if not any("versioned" in (step.get("materialized") or {}) for step in scenario["steps"]):
        return None
    for step in scenario["steps"]:
        if step["op"] == "suppress":
            above = steps[step["from"]]
            while above["op"] in _ROW_BY_ROW:
                above = steps[above["from"]]
            windows = steps.get(above.get("from"), {})
            if windows.get("op") == "windowed_by" and steps[windows["from"]]["op"] == "cogroup":
                return "a suppress of the windows of a cogroup, below a table that keeps versions"
    return None


def _subscriptions_where_the_join_is(scenario: Json) -> str | None:
    """A foreign-key join with a store of another type than the default: its subscriptions are kept in one of the same
    type, which decides whether they keep headers. In Kafka Streams it is the default."""
    default = scenario["config"].get("store_type", "rocksdb")
    if not any(entry.get("headers") for entry in scenario.get("drive", ())):
        return None
    for step in scenario["steps"]:
        kind = (step.get("materialized") or {}).get("type", default)
        if step["op"].startswith("fk_") and (kind == "rocksdb") != (default == "rocksdb"):
            return "headers of the subscriptions of a foreign-key join with a store of its own type"
    return None


def _several_to_wait_for(scenario: Json) -> str | None:
    """Idling for several partitions without records: Kafka Streams waits for one after the other, in no known order."""
    if scenario["config"].get("max_task_idle_ms", 0) <= 0:
        return None
    topics = {topic for step in scenario["steps"] for topic in step.get("topics", ())}
    topics |= {step[field] for step in scenario["steps"] for field in ("topic", "pattern") if field in step}
    topics -= {s["topic"] for s in scenario["steps"] if s["op"] in {"to", "global_table"} and "topic" in s}
    internal = any(step["op"] in _MAY_NEED_A_TOPIC for step in scenario["steps"])
    return "idling for several partitions without records" if internal or len(topics) > _TWO else None


_TWO = 2
_MAY_NEED_A_TOPIC = frozenset(
    {"repartition", "group_by", "group_by_key", "to_table", "fk_join", "fk_left_join"}
)
_MAY_NEED_A_TOPIC |= {"join", "left_join", "outer_join"}
#: With such a cache no scenario evicts anything.
_ROOM_FOR_ALL_BYTES = 100_000
_ROW_BY_ROW = frozenset({"filter", "filter_not", "map_values", "transform_values"})
_TABLES = frozenset({"table", "to_table", "count", "reduce", "aggregate"})
