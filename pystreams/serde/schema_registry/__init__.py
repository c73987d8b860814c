"""Serdes whose records contain the id of their schema, which a schema registry stores: Avro, Protobuf, JSON Schema.

Begin with ``base``, which the three formats share: it looks a topic's schemas up once, and then uses fast codecs.

- ``avro``, ``protobuf`` and ``json_schema`` are the formats.
- ``settings`` has the address and login of the registry, and how a serde uses schemas.
- ``clients`` has the connections, one for each registry and process. They are confluent-kafka's clients, which are
  imported when the first such serde is used.
- ``plain`` converts values of a program's types to dicts, lists and scalars, and back.
"""

from __future__ import annotations

from pystreams.serde.schema_registry.avro import AvroSerde
from pystreams.serde.schema_registry.json_schema import JsonSchemaSerde
from pystreams.serde.schema_registry.protobuf import ProtobufSerde
from pystreams.serde.schema_registry.settings import SchemaRegistry

__all__ = ["AvroSerde", "JsonSchemaSerde", "ProtobufSerde", "SchemaRegistry"]
