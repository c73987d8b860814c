"""Each scenario here differs in Kafka Streams, is excused by name, and agrees once what it is excused for is gone."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from tests.conformance import oracle
from tests.conformance.compare import difference
from tests.conformance.deliberate import deliberate_difference
from tests.conformance.runner import run

Json = Any


def scenario(*steps: Json, drive: list[Json], **config: Any) -> Json:
    return {"name": "named", "config": config, "steps": list(steps), "drive": drive}


def step(op: str, id: str, source: str | None = None, /, **fields: Any) -> Json:
    return {"op": op, "id": id, **({} if source is None else {"from": source}), **fields}


def to(source: str, topic: str = "out") -> Json:
    return {"op": "to", "from": source, "topic": topic}


def pipe(topic: str, key: str | None, value: str | None, ts: int, **more: Any) -> Json:
    return {"pipe": topic, "key": key, "value": value, "ts": ts, **more}


def table(id: str, topic: str, **store: Any) -> Json:
    made = step("table", id, topic=topic)
    return {**made, "materialized": store} if store else made


def without(given: Json, *path: Any, put: Any = None) -> Json:
    """The same scenario with something else, or nothing, at a place."""
    other = deepcopy(given)
    at = other
    for name in path[:-1]:
        at = at[name]
    if put is None:
        del at[path[-1]]
    else:
        at[path[-1]] = put
    return other


def deleted_from_both() -> tuple[Json, Json]:
    given = scenario(
        step("stream", "s", topics=["a"]),
        step("to_table", "left", "s", materialized={"store": "L"}),
        step("to_table", "right", "s", materialized={"store": "R"}),
        step("join", "j", "left", **{"with": "right"}, fn="join:&", materialized={"store": "J"}),
        step("to_stream", "u", "j"),
        to("u"),
        drive=[pipe("a", "k", "x", 1), pipe("a", "k", None, 2)],
    )
    return given, without(given, "steps", 3, "op", put="left_join")


def joined_cogroup() -> tuple[Json, Json]:
    windows = {"type": "tumbling", "size": 10}
    given = scenario(
        step("stream", "s", topics=["a"]),
        step("group_by_key", "g", "s"),
        step("stream", "o", topics=["b"]),
        step("group_by_key", "og", "o"),
        step("windowed_by", "w", "og", windows=windows),
        step("count", "c", "w"),
        {"op": "cogroup", "id": "co", "groups": [{"from": "g", "fn": "cat:+"}]},
        step("windowed_by", "cw", "co", windows=windows),
        step("aggregate", "t", "cw"),
        step("filter", "f", "t", fn="true"),
        step("join", "j", "c", **{"with": "f"}, fn="join:&"),
        step("to_stream", "u", "j"),
        to("u"),
        drive=[pipe("a", "k", "x", 1), pipe("b", "k", "y", 2)],
    )
    return given, without(given, "steps", 9, "materialized", put={"store": "F"})


def held_back_cogroup() -> tuple[Json, Json]:
    given = scenario(
        table("v", "a", store="V", versioned={"history": 100}),
        step("to_stream", "s", "v"),
        step("group_by_key", "g", "s"),
        {"op": "cogroup", "id": "co", "groups": [{"from": "g", "fn": "cat:+"}]},
        step("windowed_by", "w", "co", windows={"type": "tumbling", "size": 10}),
        step("aggregate", "t", "w"),
        step("suppress", "h", "t", until="window_closes"),
        step("to_stream", "u", "h"),
        to("u"),
        drive=[pipe("a", "k", "x", 1), pipe("a", "k", "y", 30)],
    )
    return given, without(given, "steps", 0, "materialized", put={"store": "V"})


def changed_twice() -> tuple[Json, Json]:
    given = scenario(
        step("stream", "s", topics=["a"]),
        step("flat_map_values", "f", "s", fn="split:,"),
        step("map_values", "m", "f", fn="null_if:-"),
        step("to_table", "left", "m", materialized={"store": "L", "cached": False}),
        table("right", "b"),
        step("fk_join", "j", "left", **{"with": "right"}, key_fn="field:0", fn="join:&"),
        step("to_stream", "u", "j"),
        to("u"),
        drive=[pipe("b", "ann", "A", 1), pipe("a", "o", "ann|1", 2), pipe("a", "o", "-,nobody|1", 3)],
    )
    return given, without(given, "steps", 5, "op", put="fk_left_join")


def gone_with_its_partner() -> tuple[Json, Json]:
    given = scenario(
        table("left", "a"),
        step("group_by", "g", "left"),
        step("aggregate", "right", "g", fn="cat_null_if:c", sub_fn="cat:-"),
        step("fk_join", "j", "left", **{"with": "right"}, key_fn="key_first:1", fn="join:&"),
        step("to_stream", "u", "j"),
        to("u"),
        drive=[pipe("a", "a", "a", 31), pipe("a", "a", "c", 130)],
    )
    return given, without(given, "steps", 3, "op", put="fk_left_join")


def forgotten_left_row() -> tuple[Json, Json]:
    given = scenario(
        table("left", "a", store="L", type="lru:1", cached=False),
        table("right", "b"),
        step("fk_join", "j", "left", **{"with": "right"}, key_fn="first:1", fn="join:&"),
        step("to_stream", "u", "j"),
        to("u"),
        drive=[
            pipe("a", "x", "c", 1),
            pipe("a", "y", "c", 2),
            pipe("b", "c", "C", 3),
            pipe("b", "c", None, 4),
        ],
        cache_max_bytes=0,
    )
    return given, without(given, "steps", 0, "materialized", "type", put="in_memory")


def bounded_global_table() -> tuple[Json, Json]:
    given = scenario(
        step("global_table", "g", topic="g", materialized={"store": "G", "type": "lru:1"}),
        step("stream", "s", topics=["a"]),
        step("join", "j", "s", **{"with": "g"}, key_fn="keep", fn="join:&"),
        to("j"),
        drive=[pipe("g", "x", "X", 1), pipe("g", "y", "Y", 2), pipe("a", "k", "x", 3)],
    )
    return given, without(given, "steps", 0, "materialized", "cached", put=False)


def bounded_right_table() -> tuple[Json, Json]:
    given = scenario(
        table("left", "a"),
        table("right", "b", store="R", type="lru:1"),
        step("fk_join", "j", "left", **{"with": "right"}, key_fn="first:1", fn="join:&"),
        step("to_stream", "u", "j"),
        to("u"),
        drive=[pipe("b", "x", "X", 1), pipe("b", "y", "Y", 2), pipe("a", "k", "x", 3)],
    )
    return given, without(given, "steps", 1, "materialized", "cached", put=False)


def bounded_right_table_behind_suppress() -> tuple[Json, Json]:
    given = scenario(
        table("left", "a"),
        table("right", "b", store="R", type="lru:1"),
        step("suppress", "later", "right", until="time_limit", wait=10),
        step("fk_left_join", "j", "left", **{"with": "later"}, key_fn="keep", fn="join:&"),
        step("to_stream", "u", "j"),
        to("u"),
        drive=[pipe("b", "x", "X", 1), pipe("b", "y", "Y", 20), pipe("a", "k", "x", 30)],
    )
    return given, without(given, "steps", 1, "materialized", "cached", put=False)


def small_cache() -> tuple[Json, Json]:
    given = scenario(
        step("global_table", "g", topic="g", materialized={"store": "G"}),
        step("stream", "s", topics=["a"]),
        step("flat_map_values", "f", "s", fn="dup:3"),
        step("group_by_key", "gr", "f"),
        step("count", "c", "gr"),
        step("to_stream", "u", "c"),
        to("u"),
        drive=[pipe("g", "x", "X" * 40, 1), pipe("a", "k", "x", 3)],
        cache_max_bytes=150,
    )
    return given, without(given, "steps", 0, "materialized", "cached", put=False)


def subscriptions() -> tuple[Json, Json]:
    headers = [["h", "1"]]
    given = scenario(
        table("left", "a"),
        table("right", "b"),
        step(
            "fk_left_join",
            "j",
            "left",
            **{"with": "right"},
            key_fn="first:1",
            fn="join:&",
            materialized={"store": "J", "type": "in_memory"},
        ),
        step("to_stream", "u", "j"),
        to("u"),
        drive=[pipe("a", "k", "x", 3, headers=headers), pipe("b", "x", "X", 4)],
    )
    return given, without(given, "steps", 2, "materialized", "type", put="rocksdb")


def subscriptions_beside_versions() -> tuple[Json, Json]:
    given, _ = subscriptions()
    given["steps"][2]["materialized"] = {"store": "J", "versioned": {"history": 10}}
    given["config"]["store_type"] = "in_memory"
    return given, without(given, "config", "store_type")


def full_buffer() -> tuple[Json, Json]:
    given = scenario(
        table("t", "a"),
        step("suppress", "h", "t", until="time_limit", wait=100, max_records=1, full="shut_down"),
        step("to_stream", "u", "h"),
        to("u"),
        drive=[pipe("a", "k", "x", 1), pipe("a", "j", "x", 2)],
        processing_handler="continue",
    )
    return given, without(given, "config", "processing_handler")


def written_by_its_reader() -> tuple[Json, Json]:
    given = scenario(
        step("add_store", "ignored", store="S", type="ts_kv"),
        table("t", "a", store="T"),
        step("to_stream", "u", "t"),
        step("filter", "f", "u", fn="value_null"),
        step("process", "p", "f", processor="ts_history", stores=["T"]),
        to("p"),
        drive=[pipe("a", "k", "x", 1), pipe("a", "k", None, 2)],
    )
    del given["steps"][0]["id"]
    return given, without(given, "steps", 4, "stores", put=["S"])


def written_behind_flushes() -> tuple[Json, Json]:
    given = scenario(
        *(table(f"t{n}", f"a{n}", store=f"T{n}") for n in (1, 2, 3)),
        step("to_stream", "u2", "t2"),
        step("process", "p2", "u2", processor="ts_history", stores=["T1"]),
        step("to_stream", "u3", "t3"),
        step("process", "p3", "u3", processor="ts_history", stores=["T2"]),
        to("p3"),
        drive=[pipe("a3", "k", "x", 1), pipe("a3", "k", "y", 2)],
    )
    return given, without(given, "steps", 4)


def long_gap() -> tuple[Json, Json]:
    given = scenario(
        step("stream", "s", topics=["a"]),
        step("group_by_key", "g", "s"),
        step("windowed_by", "w", "g", windows={"type": "session", "gap": 60_010}),
        step("count", "c", "w"),
        step("to_stream", "u", "c"),
        to("u"),
        drive=[pipe("a", "k", "x", 10), pipe("a", "k", "x", 20)],
    )
    return given, without(given, "steps", 2, "windows", "gap", put=60_009)


def useless_retention() -> tuple[Json, Json]:
    given = scenario(
        step("stream", "s", topics=["a"]),
        step("group_by_key", "g", "s"),
        step("windowed_by", "w", "g", windows={"type": "tumbling", "size": 10}),
        step("count", "c", "g", materialized={"store": "C", "retention": 300}),
        step("to_stream", "u", "c"),
        to("u"),
        drive=[pipe("a", "k", "x", 10)],
    )
    return given, without(given, "steps", 3, "from", put="w")


def timeless_row() -> tuple[Json, Json]:
    given = scenario(
        step("global_table", "g", topic="g", materialized={"store": "G"}),
        step("stream", "s", topics=["a"]),
        step("join", "j", "s", **{"with": "g"}, key_fn="keep", fn="join:&"),
        to("j"),
        drive=[pipe("g", "x", "X", -1), pipe("a", "k", "x", 3)],
    )
    return given, without(given, "drive", 0, "ts", put=0)


#: What makes a scenario and its near miss, and the name of the excuse.
NAMED = [
    (deleted_from_both, "a row deleted from both sides of a join of tables at once"),
    (joined_cogroup, "a join with the table of a windowed cogroup"),
    (held_back_cogroup, "a suppress of the windows of a cogroup, below a table that keeps versions"),
    (changed_twice, "a row of a foreign-key join that changes again before it is answered"),
    (gone_with_its_partner, "a row of a foreign-key join that changes again before it is answered"),
    (forgotten_left_row, "a row of a foreign-key join that changes again before it is answered"),
    (bounded_global_table, "a global table that keeps a number of rows, behind a cache"),
    (bounded_right_table, "a foreign-key join with a table that keeps a number of rows, behind a cache"),
    (
        bounded_right_table_behind_suppress,
        "a foreign-key join with a table that keeps a number of rows, behind a cache",
    ),
    (small_cache, "a small cache that Kafka Streams' test driver shares with a global table"),
    (subscriptions, "headers of the subscriptions of a foreign-key join with a store of its own type"),
    (
        subscriptions_beside_versions,
        "headers of the subscriptions of a foreign-key join with a store of its own type",
    ),
    (full_buffer, "a full buffer that a handler would let grow"),
    (written_by_its_reader, "a table that a step behind it writes to"),
    (written_behind_flushes, "a table that is written to when its flush is over"),
    (long_gap, "sessions that are looked for a segment before time began"),
    (useless_retention, "a retention for a store without windows"),
    (timeless_row, "a row of a global table without a time"),
]
named = pytest.mark.parametrize(("made", "why"), NAMED, ids=[made.__name__ for made, _ in NAMED])


@pytest.fixture(scope="module")
def java() -> Any:
    with oracle.Oracle() as asked:
        yield asked


@named
def test_it_is_excused_by_name_and_a_near_miss_is_not(made: Any, why: str) -> None:
    differs, agrees = made()
    assert deliberate_difference(differs) == why
    assert deliberate_difference(agrees) is None


@pytest.mark.oracle
@named
def test_kafka_streams_differs_and_agrees_about_the_near_miss(java: Any, made: Any, why: str) -> None:
    differs, agrees = made()
    theirs, of_the_other = java.ask([differs, agrees])
    assert difference(theirs, run(differs)) is not None, why
    assert difference(of_the_other, run(agrees)) is None, json.dumps(agrees)
