"""Serdes whose records name their schema, which a schema registry holds: Avro, Protobuf and JSON Schema.

confluent-kafka's clients talk to the registry, and are imported when the first such serde is used.
"""

from __future__ import annotations

from pystreams.serde.schema_registry.avro import AvroSerde
from pystreams.serde.schema_registry.json_schema import JsonSchemaSerde
from pystreams.serde.schema_registry.protobuf import ProtobufSerde
from pystreams.serde.schema_registry.settings import SchemaRegistry

__all__ = ["AvroSerde", "JsonSchemaSerde", "ProtobufSerde", "SchemaRegistry"]
