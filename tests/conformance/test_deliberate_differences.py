"""Only scenarios with a meant difference are excused from agreeing with Kafka Streams."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.deliberate import deliberate_difference


def scenario(kind: str, right: str) -> dict[str, Any]:
    """The table of topic ``a`` joined with that of ``right``."""
    return {
        "steps": [
            {"op": "stream", "id": "s", "topics": ["a"]},
            {"op": "to_table", "id": "left", "from": "s"},
            {"op": "stream", "id": "t", "topics": [right]},
            {"op": "map_values", "id": "m", "from": "t"},
            {"op": "to_table", "id": "right", "from": "m"},
            {"op": kind, "id": "j", "from": "left", "with": "right"},
        ]
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
    assert (deliberate_difference({"steps": steps}) is not None) == excused


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
    assert (deliberate_difference({"steps": steps}) is not None) is excused
