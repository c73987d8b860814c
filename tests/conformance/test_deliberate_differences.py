"""Only scenarios with a meant difference are excused from agreeing with Kafka Streams."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.compare import difference
from tests.conformance.deliberate import deliberate_difference, meant_difference
from tests.conformance.runner import run


def scenario(kind: str, right: str) -> dict[str, Any]:
    """The table of topic ``a`` joined with that of ``right``."""
    return {
        "config": {},
        "drive": [],
        "steps": [
            {"op": "stream", "id": "s", "topics": ["a"]},
            {"op": "to_table", "id": "left", "from": "s"},
            {"op": "stream", "id": "t", "topics": [right]},
            {"op": "map_values", "id": "m", "from": "t"},
            {"op": "to_table", "id": "right", "from": "m"},
            {"op": kind, "id": "j", "from": "left", "with": "right"},
        ],
    }


@pytest.mark.parametrize(
    ("kind", "right", "excused"), [("join", "a", True), ("join", "b", False), ("left_join", "a", False)]
)
def test_an_inner_join_of_tables_that_one_record_deletes_from_is_excused(
    kind: str, right: str, excused: bool
) -> None:
    assert (deliberate_difference(scenario(kind, right)) is not None) == excused


@pytest.mark.parametrize(
    ("windowed", "derived", "kind", "excused"),
    [
        (True, {"op": "filter"}, "join", True),
        (True, {"op": "map_values"}, "outer_join", True),
        (True, {"op": "filter", "materialized": {"store": "f"}}, "join", False),
        (False, {"op": "filter"}, "join", False),
        (True, {"op": "filter"}, "filter", False),
    ],
)
def test_a_join_with_the_table_of_a_windowed_cogroup_is_excused(
    windowed: bool, derived: dict[str, Any], kind: str, excused: bool
) -> None:
    steps = [
        {"op": "stream", "id": "s", "topics": ["a"]},
        {"op": "group_by_key", "id": "g", "from": "s"},
        {"op": "cogroup", "id": "c", "groups": [{"from": "g", "fn": "last"}]},
        {"op": "windowed_by", "id": "w", "from": "c"},
        {"op": "aggregate", "id": "t", "from": "w" if windowed else "c"},
        {**derived, "id": "d", "from": "t"},
        {"op": "table", "id": "other", "topic": "b"},
        {"op": kind, "id": "j", "from": "other", "with": "d"},
    ]
    assert (deliberate_difference({"config": {}, "drive": [], "steps": steps}) is not None) == excused


@pytest.mark.parametrize(
    ("left", "right", "kind", "excused"),
    [
        ("rows", "rows", "fk_join", False),
        ("kept", "rows", "fk_join", False),
        ("few", "rows", "fk_join", True),
        ("some_of_few", "rows", "fk_join", True),
        ("few", "rows", "fk_left_join", False),
        ("counted", "rows", "fk_join", True),
        ("counted", "rows", "fk_left_join", False),
        ("rows", "summed", "fk_join", True),
        ("rows", "summed", "fk_left_join", False),
        ("others", "summed", "fk_join", False),
    ],
)
def test_an_inner_foreign_key_join_is_excused_where_a_record_may_change_a_row_twice_or_in_both_tables(
    left: str, right: str, kind: str, excused: bool
) -> None:
    steps = [
        {"op": "table", "id": "rows", "topic": "a"},
        {"op": "filter", "id": "kept", "from": "rows"},
        {"op": "table", "id": "few", "topic": "b", "materialized": {"store": "F", "type": "lru:3"}},
        {"op": "filter", "id": "some_of_few", "from": "few"},
        {"op": "to_table", "id": "counted", "from": "s"},
        {"op": "group_by", "id": "grouped", "from": "rows"},
        {"op": "count", "id": "summed", "from": "grouped"},
        {"op": "table", "id": "others", "topic": "c"},
        {"op": kind, "id": "j", "from": left, "with": right},
    ]
    assert (deliberate_difference({"config": {}, "drive": [], "steps": steps}) is not None) is excused


BOUNDED: dict[str, Any] = {"store": "B", "type": "lru:2"}


@pytest.mark.parametrize(
    ("store", "excused"),
    [(BOUNDED, True), ({**BOUNDED, "cached": False}, False), ({"store": "B", "type": "in_memory"}, False)],
)
def test_tables_that_keep_a_number_of_rows_are_excused_where_a_cache_has_more(
    store: dict[str, Any], excused: bool
) -> None:
    everywhere = {"op": "global_table", "id": "g", "topic": "a", "materialized": store}
    assert (deliberate_difference({"config": {}, "drive": [], "steps": [everywhere]}) is not None) is excused
    right = [
        {"op": "table", "id": "rows", "topic": "a"},
        {"op": "table", "id": "bounded", "topic": "b", "materialized": store},
        {"op": "filter", "id": "some", "from": "bounded"},
        {"op": "fk_join", "id": "j", "from": "rows", "with": "some"},
    ]
    assert (deliberate_difference({"config": {}, "drive": [], "steps": right}) is not None) is excused
    left = [*right[:2], {"op": "fk_left_join", "id": "j", "from": "bounded", "with": "rows"}]
    assert deliberate_difference({"config": {}, "drive": [], "steps": left}) is None


@pytest.mark.parametrize(
    ("until", "handler", "excused"),
    [
        ({"until": "window_closes", "max_records": 1}, "continue", True),
        ({"until": "window_closes", "max_records": 1}, "fail", False),
        ({"until": "window_closes"}, "continue", False),
        ({"until": "time_limit", "max_bytes": 1}, "continue", False),
        ({"until": "time_limit", "max_bytes": 1, "full": "shut_down"}, "continue", True),
    ],
)
def test_a_full_buffer_is_excused_where_a_handler_would_let_it_grow(
    until: dict[str, Any], handler: str, excused: bool
) -> None:
    scenario = {"config": {"processing_handler": handler}, "steps": [{"op": "suppress", **until}]}
    assert (deliberate_difference(scenario) is not None) is excused


@pytest.mark.parametrize(
    ("bytes_", "cached", "excused"),
    [(150, True, True), (150, False, False), (0, True, False), (10**7, True, False)],
)
def test_a_small_cache_is_excused_beside_a_cached_global_table(
    bytes_: int, cached: bool, excused: bool
) -> None:
    table = {"op": "global_table", "id": "g", "topic": "a", "materialized": {"store": "G", "cached": cached}}
    asked = {"config": {"cache_max_bytes": bytes_}, "steps": [table], "drive": []}
    assert (deliberate_difference(asked) is not None) is excused


@pytest.mark.parametrize(
    ("store", "windowed", "excused"),
    [
        ({"store": "v", "versioned": {}}, True, True),
        ({"store": "v"}, True, False),
        ({"versioned": {}}, False, False),
    ],
)
def test_held_back_windows_of_a_cogroup_are_excused_where_there_are_versions(
    store: dict[str, Any], windowed: bool, excused: bool
) -> None:
    steps = [
        {"op": "table", "id": "versions", "topic": "a", "materialized": store},
        {"op": "to_stream", "id": "s", "from": "versions"},
        {"op": "group_by_key", "id": "g", "from": "s"},
        {"op": "cogroup", "id": "c", "groups": [{"from": "g", "fn": "last"}]},
        {"op": "windowed_by", "id": "w", "from": "c"},
        {"op": "aggregate", "id": "t", "from": "w" if windowed else "c"},
        {"op": "filter", "id": "f", "from": "t"},
        {"op": "suppress", "id": "held", "from": "f"},
    ]
    assert (deliberate_difference({"config": {}, "drive": [], "steps": steps}) is not None) is excused


@pytest.mark.parametrize(
    ("config", "store", "headers", "excused"),
    [
        ({}, {"type": "in_memory"}, True, True),
        ({}, {"type": "lru:1"}, True, True),
        ({}, {"type": "in_memory"}, False, False),
        ({"store_type": "in_memory"}, {"type": "in_memory"}, True, False),
        ({"store_type": "in_memory"}, {"type": "rocksdb"}, True, True),
        ({}, {}, True, False),
    ],
)
def test_subscriptions_are_excused_where_only_the_join_has_another_store(
    config: dict[str, Any], store: dict[str, Any], headers: bool, excused: bool
) -> None:
    steps = [
        {"op": "table", "id": "t", "topic": "a"},
        {"op": "fk_left_join", "id": "j", "from": "t", "with": "t", "materialized": {"store": "J", **store}},
    ]
    drive = [{"pipe": "a", "headers": [["h", "1"]] if headers else []}]
    asked = {"config": config, "steps": steps, "drive": drive}
    assert (deliberate_difference(asked) is not None) is excused


@pytest.mark.parametrize(("bytes_", "excused"), [(400, True), (0, False), (10**7, False)])
def test_rows_that_are_gone_are_excused_beside_a_foreign_key_join_and_a_small_cache(
    bytes_: int, excused: bool
) -> None:
    steps = [
        {"op": "table", "id": "t", "topic": "a"},
        {"op": "table", "id": "few", "topic": "b", "materialized": BOUNDED},
        {"op": "fk_left_join", "id": "j", "from": "t", "with": "t"},
    ]
    asked = {"config": {"cache_max_bytes": bytes_}, "steps": steps, "drive": []}
    assert (deliberate_difference(asked) is not None) is excused


@pytest.mark.parametrize(
    ("idle_ms", "topics", "more", "excused"),
    [
        (5, ["a", "b"], [], False),
        (5, ["a", "b", "c"], [], True),
        (5, ["a"], [{"op": "group_by", "id": "g", "from": "s"}], True),
        (-1, ["a", "b", "c"], [], False),
        (0, ["a", "b", "c"], [], False),
        (5, ["a", "b"], [{"op": "to", "from": "s", "topic": "out"}], False),
        (5, ["a", "b"], [{"op": "global_table", "id": "g", "topic": "g"}], False),
    ],
)
def test_idling_is_excused_where_there_may_be_several_to_wait_for(
    idle_ms: int, topics: list[str], more: list[dict[str, Any]], excused: bool
) -> None:
    steps = [{"op": "stream", "id": "s", "topics": topics}, *more]
    asked = {"config": {"max_task_idle_ms": idle_ms}, "steps": steps, "drive": []}
    assert (deliberate_difference(asked) is not None) is excused


def asked(steps: list[dict[str, Any]], drive: list[dict[str, Any]], **config: Any) -> dict[str, Any]:
    """A scenario whose first stream goes to ``out``."""
    return {
        "name": "asked",
        "config": config,
        "steps": [*steps, {"op": "to", "from": "s", "topic": "out"}],
        "drive": drive,
    }


@pytest.mark.parametrize(("topics", "at"), [(["a", "b"], 2), (["a", "b", "c"], 3)])
def test_kafka_streams_waits_for_one_after_the_other(topics: list[str], at: int) -> None:
    """``at``: with which step of the clock its record has come."""
    record = {"pipe": "a", "key": "k", "value": "x", "ts": 9}
    drive = [record, {"advance_wall_ms": 49}, {"advance_wall_ms": 1}, {"advance_wall_ms": 50}]
    scenario = asked([{"op": "stream", "id": "s", "topics": topics}], drive, max_task_idle_ms=50)
    theirs = {"outputs": {"out": [{"at": at, "key": "k", "value": "x", "ts": 9, "headers": []}]}}
    assert (difference(theirs, run(scenario), 1) is None) == (len(topics) == 2)
    assert (deliberate_difference(scenario) is None) == (len(topics) == 2)


@pytest.mark.parametrize(
    ("first", "second", "timestamp", "excused"),
    [
        ({}, {}, 3, False),
        ({"timestamp_extractor": "value_ts"}, {"timestamp_extractor": "value_ts"}, 7, False),
        ({}, {"topics": ["b"], "timestamp_extractor": "value_ts"}, 3, False),
        ({}, {"topics": ["b"], "value_type": "int"}, 3, False),
        ({}, {"timestamp_extractor": "value_ts"}, 3, True),
        ({"timestamp_extractor": "value_ts"}, {}, 7, True),
        ({}, {"value_type": "int"}, 3, True),
    ],
)
def test_a_topic_that_streams_read_in_two_ways_is_excused(
    first: dict[str, Any], second: dict[str, Any], timestamp: int, excused: bool
) -> None:
    """Kafka Streams reads it as the first of them says; with ``timestamp`` the record comes out."""
    steps = [
        {"op": "stream", "id": "s", "topics": ["a"], **first},
        {"op": "stream", "id": "again", "topics": ["a"], **second},
        {"op": "peek", "id": "seen", "from": "again"},
    ]
    scenario = asked(steps, [{"pipe": "a", "key": "k", "value": "x@7", "ts": 3}])
    theirs = {"outputs": {"out": [{"at": 0, "key": "k", "value": "x@7", "ts": timestamp, "headers": []}]}}
    assert (difference(theirs, run(scenario), 1) is not None) == excused
    assert (deliberate_difference(scenario) is not None) == excused


#: Kafka Streams' results of the scenario below: what it wrote, and how it failed.
FIRST = {"at": 0, "key": {"key": "k", "start": 122, "end": 147}, "value": "1", "ts": 147, "headers": []}
LOGGED = {"at": 0, "key": "k\\x00\\x00\\x00\\x00\\x00\\x00\\x00z\\x00\\x00\\x00\\x00", "value": "1"} | {
    "key_hex": "6b000000000000007a00000000", "value_hex": "31", "ts": 147, "headers": [],
}  # fmt: skip
NULL = {
    "class": "java.lang.NullPointerException",
    "message": 'Cannot invoke "org.apache.kafka.streams.state.ValueAndTimestamp.value()" because "next.value" is null',
}
FAILED = {
    "outputs": {"out": [FIRST]},
    "internal": {"t-T-changelog": [LOGGED]},
    "error": {"phase": "drive", "at": 1, "causes": [NULL]},
}


@pytest.mark.parametrize(
    ("windows", "theirs", "excused"),
    [
        ("sliding", FAILED, True),
        ("sliding", {**FAILED, "outputs": {"out": [FIRST, FIRST]}}, False),
        ("sliding", {**FAILED, "internal": {}}, False),
        ("sliding", {**FAILED, "error": {"phase": "drive", "at": 1, "causes": []}}, False),
        ("sliding", {**FAILED, "error": {"phase": "drive", "at": 2, "causes": [NULL]}}, False),
        ("tumbling", FAILED, False),
    ],
)
def test_a_failure_at_a_deleted_sliding_window_is_excused(
    windows: str, theirs: dict[str, Any], excused: bool
) -> None:
    steps = [
        {"op": "stream", "id": "in", "topics": ["a"]},
        {"op": "peek", "id": "first", "from": "in"},
        {"op": "group_by_key", "id": "g", "from": "in"},
        {"op": "group_by_key", "id": "h", "from": "first"},
        {"op": "cogroup", "id": "c", "groups": [{"from": "g", "fn": "len"}, {"from": "h", "fn": "null"}]},
        {"op": "windowed_by", "id": "w", "from": "c", "windows": {"type": windows, "diff": 25, "size": 25}},
        {"op": "aggregate", "id": "t", "from": "w", "materialized": {"store": "T"}},
        {"op": "to_stream", "id": "s", "from": "t"},
    ]
    scenario = asked(steps, [{"pipe": "a", "key": "k", "value": "x", "ts": ts} for ts in (147, 150, 200)])
    assert difference(theirs, run(scenario)) is not None
    assert (meant_difference(scenario, theirs) is not None) == excused


#: Kafka Streams' result of the scenario below.
NO_TOPIC = {
    "class": "java.lang.NullPointerException",
    "message": 'Cannot invoke "String.getBytes(java.nio.charset.Charset)" because "this.topic" is null',
}
STOPPED = {"outputs": {}, "internal": {}, "error": {"phase": "drive", "at": 0, "causes": [NO_TOPIC]}}


@pytest.mark.parametrize(
    ("grace", "theirs", "excused"),
    [
        ({"grace": 0}, STOPPED, True),
        ({"grace": 5}, STOPPED, True),
        ({}, STOPPED, False),
        ({"grace": 0}, {**STOPPED, "outputs": {"out": [{**FIRST, "at": -1}]}}, False),
        ({"grace": 0}, {**STOPPED, "error": {"phase": "drive", "at": 0, "causes": [NULL]}}, False),
    ],
)
def test_a_failure_at_a_punctuators_record_that_waits_is_excused(
    grace: dict[str, int], theirs: dict[str, Any], excused: bool
) -> None:
    steps = [
        {"op": "stream", "id": "s", "topics": ["a"]},
        {"op": "select_key", "id": "k", "from": "s", "fn": "first:1"},
        {"op": "process", "id": "p", "from": "k", "processor": "two_ticks:wall:10:4"},
        {
            "op": "table",
            "id": "t",
            "topic": "t",
            "materialized": {"store": "T", "versioned": {"history": 60}},
        },
        {"op": "left_join", "id": "j", "from": "p", "with": "t", "fn": "join:&", **grace},
    ]
    scenario = asked(steps, [{"advance_wall_ms": 25}])
    scenario["config"]["optimize"] = "merge.repartition.topics"
    assert difference(theirs, run(scenario)) is not None
    assert (meant_difference(scenario, theirs) is not None) == excused
