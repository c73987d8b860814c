"""Where two topologies differ first is told by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pystreams import StreamsBuilder, TimeWindows
from pystreams.topology.fingerprint import first_difference, shape


def shape_of(
    *,
    topic: str = "in",
    store: str = "n",
    size: int = 10,
    more: bool = False,
    key: type = str,
    rows: Any = None,
) -> Any:
    builder = StreamsBuilder()
    stream = builder.stream(topic, key=key, value=int)
    stream.group_by_key().windowed_by(TimeWindows.tumbling(size)).count(name=store)
    if more:
        builder.stream("beside", key=str, value=int).to("out")
    if rows is not None:
        builder.global_table("rows", key=str, value=rows, name="rows")
    return shape(builder.build().build("app"))


def test_equal_ones_have_none():
    assert first_difference(shape_of(), shape_of()) == ""


@pytest.mark.parametrize(
    "changed, told",
    [
        ({"topic": "other"}, 'sub-topology 0: node KSTREAM-SOURCE-0000000000 was ["source", '),
        ({"key": bytes}, "sub-topology 0: node KSTREAM-SOURCE-0000000000: key was text, is now bytes"),
        ({"store": "m"}, "sub-topology 0: node KSTREAM-AGGREGATE-0000000001 was"),
        ({"size": 20}, "sub-topology 0: node KSTREAM-AGGREGATE-0000000001 was"),
        ({"more": True}, "sub-topology 1 is new"),
        ({"rows": str}, "global store rows is new"),
    ],
)
def test_the_first_one_is_reported(changed: dict[str, Any], told: str):
    assert first_difference(shape_of(), shape_of(**changed)).startswith(told)


def test_a_global_store_is_named():
    found = first_difference(shape_of(rows=str), shape_of(rows=int))
    assert found.startswith("global store rows: node KSTREAM-SOURCE-")
    assert found.endswith(": value was text, is now int in 8 bytes")
    assert first_difference(shape_of(rows=str), shape_of(more=True, rows=str)) == "sub-topology 1 is new"
    assert first_difference(shape_of(rows=str), shape_of()) == "global store rows is gone"


def test_what_is_gone_is_reported():
    assert first_difference(shape_of(more=True), shape_of()) == "sub-topology 1 is gone"
    whole = shape_of()
    fewer = [{**whole[0], "nodes": whole[0]["nodes"][:-1]}]
    name = whole[0]["nodes"][-1][1]
    assert first_difference(whole, fewer) == f"sub-topology 0: node {name} is gone"
    assert first_difference(fewer, whole) == f"sub-topology 0: node {name} is new"
    stores = [{**whole[0], "stores": []}]
    assert first_difference(whole, stores) == "sub-topology 0: store n is gone"


@dataclass
class Cents:
    cents: int = 0


@dataclass
class Euros:
    euros: int = 0


def test_a_field_is_named_by_its_place():
    found = first_difference(shape_of(rows=Cents), shape_of(rows=Euros))
    assert "value.cents is gone (perhaps it is now euros)" in found


def test_a_shape_of_an_earlier_version_is_not_compared():
    earlier = [{name: told for name, told in part.items() if name != "version"} for part in shape_of()]
    found = first_difference(earlier, shape_of())
    assert found.startswith("an earlier version of pystreams described one of them")
