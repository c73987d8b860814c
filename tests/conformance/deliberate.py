"""Scenarios in which pystreams differs from Kafka Streams on purpose: each has a line in docs/differences.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.conformance.compare import LEVELS, difference
from tests.conformance.lost_on_close import lost_on_close
from tests.conformance.runner import run

Json = dict[str, Any]


def meant_difference(scenario: Json, theirs: Json, level: int = LEVELS) -> str | None:
    """Why a scenario differs from what Kafka Streams has made of it; None: for no good reason."""
    return (
        deliberate_difference(scenario)
        or lost_on_close(scenario, theirs, level)
        or _failed_at_a_deleted_window(scenario, theirs)
        or _failed_where_what_a_punctuator_forwards_waits(scenario, theirs)
    )


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
        or _one_topic_read_in_two_ways(scenario)
        or _table_that_its_reader_writes_to(scenario)
        or _table_written_to_behind_its_flush(scenario)
        or _gap_that_begins_before_time(scenario)
        or _retention_without_windows(scenario)
        or _row_without_a_time(scenario)
    )


def _deleted_on_both_sides(scenario: Json) -> str | None:
    """An inner join of tables that one record can delete from both: behind a cache, Kafka Streams keeps the row."""
    sources: dict[str, frozenset[str]] = {}
    tables: set[str] = set()
    for step in scenario["steps"]:
        above = _steps_above(step)
        if step["op"] == "join" and tables.issuperset(above):
            left, right = (sources[id] for id in above)
            if left & right:
                return "a row deleted from both sides of a join of tables at once"
        for result in (step, *step.get("branches", ()), step.get("default", {})):
            if "id" in result:
                sources[result["id"]] = _topics_behind(step, sources)
                if step["op"] in _TABLES or tables.intersection(above):
                    tables.add(result["id"])
    return None


def _steps_above(step: Json) -> list[str]:
    above = [step[field] for field in ("from", "with") if field in step]
    return above + [group["from"] for group in step.get("groups", ())]


def _topics_behind(step: Json, sources: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The topics from which the records of a step come. ``sources``: those of the steps before it."""
    own = frozenset(step.get("topics", ())) | frozenset(step[f] for f in ("topic",) if f in step)
    return own.union(*(sources.get(id, frozenset()) for id in _steps_above(step)))


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
    """An inner foreign-key join of a table whose rows one record can change several times, or together with the rows of
    the other table, or that forgets rows by itself: Kafka Streams may keep a result that is gone."""
    read: set[str] = set()
    sources: dict[str, frozenset[str]] = {}
    for step in scenario["steps"]:
        for result in (step, *step.get("branches", ()), step.get("default", {})):
            if "id" in result:
                sources[result["id"]] = _topics_behind(step, sources)
        forgets = "lru" in (step.get("materialized") or {}).get("type", "")
        if not forgets and (step["op"] == "table" or (step["op"] in _ROW_BY_ROW and step["from"] in read)):
            read.add(step["id"])
        if step["op"] == "fk_join":
            left, right = step["from"], step["with"]
            if left not in read or (right not in read and sources[left] & sources[right]):
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
            while right["op"] in {*_ROW_BY_ROW, "suppress"} and not right.get("materialized"):
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
        own = step.get("materialized") or {}
        # Versions are kept on disk only.
        kind = "rocksdb" if "versioned" in own else own.get("type", default)
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


def _failed_at_a_deleted_window(scenario: Json, theirs: Json) -> str | None:
    """Sliding windows are read backwards; in Kafka Streams the cache's deletion of one then comes as a window without a
    value. What was before it agrees."""
    windows = (step["windows"]["type"] for step in scenario["steps"] if step["op"] == "windowed_by")
    if "sliding" not in windows or not _agrees_until_null(scenario, theirs, '.value" is null'):
        return None
    return "a sliding window that was deleted in a cache"


def _failed_where_what_a_punctuator_forwards_waits(scenario: Json, theirs: Json) -> str | None:
    """A punctuator's record, which comes from no topic, is to wait in a join with a grace period: Kafka Streams cannot
    write the name of the topic. What was before it agrees."""
    if not any("grace" in step and step["op"] in {"join", "left_join"} for step in scenario["steps"]):
        return None
    if not _agrees_until_null(scenario, theirs, '"this.topic" is null'):
        return None
    return "a punctuator's record that waits in a join with a grace"


def _agrees_until_null(scenario: Json, theirs: Json, null: str) -> bool:
    """Whether Kafka Streams has failed at a null, whose exception has this text, and all that was written before
    agrees."""
    error = theirs.get("error") or {}
    if not any(null in cause["message"] for cause in error.get("causes", ())) or error["phase"] != "drive":
        return False
    ours = run({**scenario, "drive": scenario["drive"][: error["at"]]})
    return difference(_before(error["at"], theirs), _before(error["at"], ours)) is None


def _before(at: int, result: Json) -> Json:
    """What was written before a step of the drive."""
    written = {
        field: {topic: [record for record in records if record["at"] < at] for topic, records in of.items()}
        for field, of in result.items()
        if field in {"outputs", "internal"}
    }
    return {field: {topic: found for topic, found in of.items() if found} for field, of in written.items()}


def _one_topic_read_in_two_ways(scenario: Json) -> str | None:
    """Streams of the same topics with other types or another extractor: in Kafka Streams the first one's count."""
    ways: dict[str, tuple[str, str]] = {}
    for step in scenario["steps"]:
        if step["op"] == "stream":
            topics = step.get("pattern") or ",".join(sorted(step["topics"]))
            way = (step.get("value_type", "str"), step.get("timestamp_extractor", ""))
            if ways.setdefault(topics, way) != way:
                return "a topic that streams read in two ways"
    return None


def _table_that_its_reader_writes_to(scenario: Json) -> str | None:
    """A table behind a cache that a step below it writes to: its flush writes to it. Kafka Streams then forgets what
    was written to a key that is just being deleted, and flushes no more than twice."""
    written = any(above == table for above, table in _written_behind_flushes(scenario))
    return "a table that a step behind it writes to" if written else None


def _table_written_to_behind_its_flush(scenario: Json) -> str | None:
    """Three tables behind caches of which the flush of the last writes to the second, and that of this to the first:
    Kafka Streams flushes no more than twice."""
    written = _written_behind_flushes(scenario)
    thrice = any(table == above for _, table in written for above, _ in written)
    return "a table that is written to when its flush is over" if thrice else None


def _written_behind_flushes(scenario: Json) -> set[tuple[str, str]]:
    """Ids of two tables behind caches: the flush of the first writes to the second, which was flushed before it."""
    if scenario["config"].get("cache_max_bytes") == 0:
        return set()
    tables: dict[str, int] = {}
    by_store: dict[str, str] = {}
    behind: dict[str, set[str]] = {}
    written = set()
    for place, step in enumerate(scenario["steps"]):
        store, id = step.get("materialized") or {}, step.get("id", "")
        readers = (step, *step.get("groups", ()))
        above = {reader[field] for reader in readers for field in ("from", "with") if field in reader}
        behind[id] = above.union(*(behind.get(one, set()) for one in above))
        if step["op"] in _TABLES and "store" in store and store.get("cached", True):
            tables[id] = place
            by_store[store["store"]] = id
        if step.get("processor") == "ts_history" and step["stores"][0] in by_store:
            table = by_store[step["stores"][0]]
            written |= {(one, table) for one in behind[id] if tables.get(one, -1) >= tables[table]}
    return written


def _gap_that_begins_before_time(scenario: Json) -> str | None:
    """Sessions behind a cache that are looked for a segment of their store, or more, before time began: Kafka Streams
    fails."""
    config, steps = scenario["config"], {step["id"]: step for step in scenario["steps"] if "id" in step}
    earliest = min((entry["ts"] for entry in scenario.get("drive", ()) if "ts" in entry), default=0)
    for step in scenario["steps"]:
        windowed = steps.get(step.get("from"), {})
        windows, store = windowed.get("windows", {}), step.get("materialized") or {}
        if windows.get("type") != "session" or windowed.get("emit") == "close":
            continue
        cached = store.get("cached", True) and config.get("cache_max_bytes") != 0
        on_disk = store.get("type", config.get("store_type", "rocksdb")) == "rocksdb"
        retention = store.get("retention", windows["gap"] + windows.get("grace", 0))
        if cached and on_disk and windows["gap"] - earliest >= max(retention // 2, _SEGMENT_MIN_MS):
            return "sessions that are looked for a segment before time began"
    return None


def _retention_without_windows(scenario: Json) -> str | None:
    """``retention`` for a store without windows: Kafka Streams ignores it."""
    steps = {step["id"]: step for step in scenario["steps"] if "id" in step}
    for step in scenario["steps"]:
        windowed = steps.get(step.get("from"), {}).get("op") == "windowed_by"
        if "retention" in (step.get("materialized") or {}) and not windowed:
            return "a retention for a store without windows"
    return None


def _row_without_a_time(scenario: Json) -> str | None:
    """A record without a timestamp in the topic of a global table: Kafka Streams stops."""
    everywhere = {step["topic"] for step in scenario["steps"] if step["op"] == "global_table"}
    if any(entry.get("pipe") in everywhere and entry["ts"] < 0 for entry in scenario.get("drive", ())):
        return "a row of a global table without a time"
    return None


_TWO = 2
#: No segment of a store is shorter.
_SEGMENT_MIN_MS = 60_000
_MAY_NEED_A_TOPIC = frozenset(
    {"repartition", "group_by", "group_by_key", "to_table", "fk_join", "fk_left_join"}
)
_MAY_NEED_A_TOPIC |= {"join", "left_join", "outer_join"}
#: With such a cache no scenario evicts anything.
_ROOM_FOR_ALL_BYTES = 100_000
_ROW_BY_ROW = frozenset({"filter", "filter_not", "map_values", "transform_values"})
_TABLES = frozenset({"table", "to_table", "count", "reduce", "aggregate"})
