"""Serdes carry the types of their values: checked by mypy and pyright, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from google.protobuf.empty_pb2 import Empty

from pystreams import KStream, KTable, StreamsBuilder, Windowed
from pystreams.serde import (
    AvroSerde,
    FaustSerde,
    JsonSchemaSerde,
    ListSerde,
    ProtobufSerde,
    TimeWindowedSerde,
)


@dataclass
class Order:
    id: int


SCHEMA = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'

assert_type(AvroSerde(SCHEMA), AvroSerde[Any])
assert_type(AvroSerde(SCHEMA, Order), AvroSerde[Order])
assert_type(AvroSerde(SCHEMA, Order, registry="mock://typing", auto_register=False), AvroSerde[Order])
assert_type(JsonSchemaSerde(Order), JsonSchemaSerde[Order])
assert_type(FaustSerde(Order), FaustSerde[Order])
assert_type(ListSerde(int), ListSerde[int])
assert_type(ListSerde(ListSerde(str)).deserializer("t")(b""), "list[list[str | None] | None]")
assert_type(ProtobufSerde(Empty), ProtobufSerde[Empty])
assert_type(TimeWindowedSerde(AvroSerde(SCHEMA, Order), 10).deserializer("t")(b""), Windowed[Order])

builder = StreamsBuilder()
orders = builder.stream("orders", key=ListSerde(int), value=AvroSerde(SCHEMA, Order))
assert_type(orders, "KStream[list[int | None], Order]")
ids = orders.map_values(lambda order: order.id, value=int)
assert_type(ids, "KStream[list[int | None], int]")
table = builder.table("empties", key=str, value=ProtobufSerde(Empty))
assert_type(table, KTable[str, Empty])
joined = builder.stream("others", key=str, value=JsonSchemaSerde(Order)).join(
    table, lambda order, empty: order.id
)
assert_type(joined, KStream[str, int])
