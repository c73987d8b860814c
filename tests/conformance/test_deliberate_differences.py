"""Only scenarios with a meant difference are excused from agreeing with Kafka Streams."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.deliberate import deliberate_difference


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
    ("left", "kind", "excused"),
    [
        ("rows", "fk_join", False),
        ("kept", "fk_join", False),
        ("counted", "fk_join", True),
        ("counted", "fk_left_join", False),
    ],
)
def test_an_inner_foreign_key_join_is_excused_where_a_record_may_change_a_row_twice(
    left: str, kind: str, excused: bool
) -> None:
    steps = [
        {"op": "table", "id": "rows", "topic": "a"},
        {"op": "filter", "id": "kept", "from": "rows"},
        {"op": "to_table", "id": "counted", "from": "s"},
        {"op": kind, "id": "j", "from": left, "with": "rows"},
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
    left = [*right[:2], {"op": "fk_join", "id": "j", "from": "bounded", "with": "rows"}]
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
