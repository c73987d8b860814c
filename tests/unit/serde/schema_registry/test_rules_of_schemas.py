"""A schema's rules (data contracts) are carried out by Confluent's own code, on every record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka.schema_registry import Rule, RuleKind, RuleMode, RuleSet, Schema
from confluent_kafka.schema_registry.rule_registry import RuleRegistry
from confluent_kafka.schema_registry.serde import RuleExecutor

from pystreams.errors import SerializationError
from pystreams.serde import AvroSerde, JsonSchemaSerde, SchemaRegistry
from pystreams.serde.schema_registry.clients import client_of

FIELDS = '{"name": "id", "type": "long"}, {"name": "note", "type": "string"}'
ORDER = '{"type": "record", "name": "Order", "fields": [' + FIELDS + "]}"
NEWER = (
    '{"type": "record", "name": "Order", "fields": ['
    + FIELDS
    + ', {"name": "n", "type": "int", "default": 3}]}'
)


@dataclass
class Order:
    id: int
    note: str


class Backwards(RuleExecutor):
    """Writes notes backwards, and reads them so."""

    def type(self) -> str:
        return "TEST_BACKWARDS"

    def transform(self, ctx: Any, message: Any) -> Any:
        return {**message, "note": message["note"][::-1]}


class Positive(RuleExecutor):
    def type(self) -> str:
        return "TEST_POSITIVE"

    def transform(self, ctx: Any, message: Any) -> Any:
        return message["id"] > 0


@pytest.fixture(autouse=True)
def executors() -> Iterator[None]:
    registry = RuleRegistry.get_global_instance()
    before = dict(registry._rule_executors)
    registry.register_rule_executor(Backwards())
    registry.register_rule_executor(Positive())
    yield
    registry._rule_executors = before


@pytest.fixture
def ruled(mock: SchemaRegistry) -> SchemaRegistry:
    """A registry whose subject has rules."""
    rules = RuleSet(
        migration_rules=None,
        domain_rules=[
            Rule(
                "positive",
                "ids are positive",
                RuleKind.CONDITION,
                RuleMode.WRITE,
                "TEST_POSITIVE",
                *[None] * 6,
            ),
            Rule("backwards", "", RuleKind.TRANSFORM, RuleMode.WRITEREAD, "TEST_BACKWARDS", *[None] * 6),
        ],
    )
    client_of(mock).register_schema("orders-value", Schema(ORDER, "AVRO", rule_set=rules))
    return mock


def test_values_are_transformed_when_written_and_when_read(ruled: SchemaRegistry):
    serde = AvroSerde(ORDER, Order, registry=ruled, use_latest_version=True)
    write, read = serde.serializer("orders"), serde.deserializer("orders")
    for note in ("abc", "xyz"):
        data = write(Order(1, note))
        assert data.endswith(note[::-1].encode())
        assert read(data) == Order(1, note)


def test_records_with_rules_are_read_into_the_schema_of_the_program(ruled: SchemaRegistry):
    data = AvroSerde(ORDER, registry=ruled, use_latest_version=True).serializer("orders")(
        {"id": 1, "note": "ab"}
    )
    assert AvroSerde(NEWER, registry=ruled).deserializer("orders")(data) == {"id": 1, "note": "ab", "n": 3}
    assert AvroSerde(registry=ruled).deserializer("orders")(data) == {"id": 1, "note": "ab"}


def test_json_has_rules_too(mock: SchemaRegistry):
    rule = Rule("backwards", "", RuleKind.TRANSFORM, RuleMode.WRITEREAD, "TEST_BACKWARDS", *[None] * 6)
    serde = JsonSchemaSerde(Order, registry=mock, use_latest_version=True)
    rules = RuleSet(migration_rules=None, domain_rules=[rule])
    client_of(mock).register_schema("orders-value", Schema(serde._schema.text, "JSON", rule_set=rules))
    data = serde.serializer("orders")(Order(1, "ab"))
    assert data[5:] == b'{"id":1,"note":"ba"}'
    assert serde.deserializer("orders")(data) == Order(1, "ab")


def test_a_value_that_breaks_a_rule_is_not_written(ruled: SchemaRegistry):
    write = AvroSerde(ORDER, Order, registry=ruled, use_latest_version=True).serializer("orders")
    write(Order(1, ""))
    with pytest.raises(SerializationError, match="a value of type Order cannot be serialized"):
        write(Order(-1, ""))
    write(Order(2, ""))
