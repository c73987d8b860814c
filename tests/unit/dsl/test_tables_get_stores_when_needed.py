"""A table has a store if it has a name or somebody reads it; old values travel only where somebody wants them."""

from __future__ import annotations

import pytest

from pystreams import KStream, KTable, StreamsBuilder
from pystreams.dsl.operators.stream_table_join import StreamTableJoin
from pystreams.dsl.operators.table import TableFilter, TableMapValues, TableSource
from pystreams.dsl.operators.value_getter import FilterGetter, MapValuesGetter, StoreGetter, WindowStoreGetter
from pystreams.topology.nodes import ProcessorNode


@pytest.fixture
def builder() -> StreamsBuilder:
    return StreamsBuilder()


@pytest.fixture
def table(builder) -> KTable[str, int]:
    return builder.table("t", key=str, value=int, step="t")


@pytest.fixture
def lines(builder) -> KStream[str, str]:
    return builder.stream("lines", key=str, value=str)


def processor(builder: StreamsBuilder, name: str) -> ProcessorNode:
    node = builder.build().nodes[name]
    assert isinstance(node, ProcessorNode)
    return node


def source(builder: StreamsBuilder) -> TableSource:
    operation = processor(builder, "t").operation
    assert isinstance(operation, TableSource)
    return operation


def test_a_table_that_nobody_reads_has_no_store(builder, table):
    table.to_stream().to("out")
    assert source(builder).store is None
    assert builder.build().stores == {}
    assert table.queryable_store_name is None


def test_a_table_with_a_name_has_a_store_that_can_be_queried(builder):
    named = builder.table("t", name="mine", step="t")
    assert named.queryable_store_name == "mine"
    assert processor(builder, "t").stores == ["mine"]


def test_a_join_materialises_the_table_that_it_reads(builder, table, lines):
    lines.join(table, lambda line, row: f"{line}{row}", step="join").to("out")
    assert source(builder).store == "t-STATE-STORE-0000000000"
    assert not source(builder).send_old_values
    assert processor(builder, "join").stores == ["t-STATE-STORE-0000000000"]
    assert table.queryable_store_name is None


def test_a_join_reads_through_tables_that_have_no_store(builder, table, lines):
    derived = table.filter(lambda row: row > 0).map_values(lambda row: row + 1)
    lines.join(derived, lambda line, row: f"{line}{row}", step="join").to("out")
    operation = processor(builder, "join").operation
    assert isinstance(operation, StreamTableJoin)
    assert isinstance(operation.table, MapValuesGetter)
    assert isinstance(operation.table.parent, FilterGetter)
    assert isinstance(operation.table.parent.parent, StoreGetter)
    assert processor(builder, "join").stores == ["t-STATE-STORE-0000000000"]


def test_a_join_reads_the_nearest_store(builder, table, lines):
    lines.join(table.filter(lambda row: row > 0, name="kept"), lambda line, row: line, step="join").to("out")
    assert processor(builder, "join").stores == ["kept"]
    assert source(builder).store is None


def test_a_join_reads_a_windowed_table_by_window(builder, lines):
    from pystreams import TimeWindows

    counts = lines.group_by_key().windowed_by(TimeWindows.tumbling(10)).count(name="w")
    counts.to_stream().join(counts, lambda n, m: n + m, step="join", value=int).to("out")
    operation = processor(builder, "join").operation
    assert isinstance(operation, StreamTableJoin)
    assert isinstance(operation.table, WindowStoreGetter)


def test_a_grouping_makes_the_source_send_old_values_and_gives_it_a_store(builder, table):
    table.map_values(lambda row: row, value=int).group_by(lambda row: (row, row), key=int, value=int).count()
    assert source(builder).send_old_values
    assert source(builder).store == "t-STATE-STORE-0000000000"


def test_a_grouping_stops_at_the_nearest_store(builder, table):
    kept = table.map_values(lambda row: row, name="kept", value=int, step="kept")
    kept.group_by(lambda row: (row, row), key=int, value=int).count()
    operation = processor(builder, "kept").operation
    assert isinstance(operation, TableMapValues)
    assert operation.send_old_values
    assert source(builder).store is None


def test_a_filter_uses_old_values_only_where_they_are_at_hand(builder, table):
    table.filter(lambda row: row > 0, step="bare")
    named = builder.table("named", name="named", step="named", value=int)
    named.filter(lambda row: row > 0, step="over-store")
    bare, over_store = (processor(builder, name).operation for name in ("bare", "over-store"))
    assert isinstance(bare, TableFilter)
    assert not bare.send_old_values
    assert isinstance(over_store, TableFilter)
    assert over_store.send_old_values


def test_a_filter_without_old_values_learns_them_from_a_grouping_behind_it(builder, table):
    table.filter(lambda row: row > 0, step="f").group_by(lambda row: (row, row), key=int, value=int).count()
    operation = processor(builder, "f").operation
    assert isinstance(operation, TableFilter)
    assert operation.send_old_values
    assert source(builder).store is not None
