"""Serdes: they serialize keys and values to bytes, and deserialize them.

Begin with ``base``: the interface of a serde. ``lookup`` finds the serde of a type, ``shapes`` looks into types.

- ``primitives``: single values, with the bytes of Java's serdes. ``lists``: Java's list serde.
- ``structured``: JSON and msgpack, with ``pydantic_models`` and ``faust_models`` for models of these libraries.
- ``schema_registry/``: Avro, Protobuf and JSON Schema with a registry.
- Bytes of the DSL itself: ``windowed`` keys, ``change`` (new and old value), ``join_side``, ``subscriptions``
  (foreign-key joins); ``varint`` is a building block.
- ``recognised``: text and windowed keys in bytes of an unknown format.
- ``content``: writes and reads the keys and values of one topic, with errors that say which of them is wrong.
- ``schemas/``: the schemas of serdes' bytes, as data, to compare two versions of a program.
"""

from __future__ import annotations

from pystreams.serde.base import AnySerde, Serde
from pystreams.serde.change import ChangeSerde
from pystreams.serde.faust_models import FaustSerde
from pystreams.serde.lists import ListSerde
from pystreams.serde.lookup import serde_for
from pystreams.serde.primitives import BOOL, BYTES, FLOAT, FLOAT32, INT, INT16, INT32, STR, UUID, VOID
from pystreams.serde.schema_registry import AvroSerde, JsonSchemaSerde, ProtobufSerde, SchemaRegistry
from pystreams.serde.structured import JsonSerde, MsgpackSerde
from pystreams.serde.windowed import SessionWindowedSerde, TimeWindowedSerde

__all__ = [
    "BOOL",
    "BYTES",
    "FLOAT",
    "FLOAT32",
    "INT",
    "INT16",
    "INT32",
    "STR",
    "UUID",
    "VOID",
    "AnySerde",
    "AvroSerde",
    "ChangeSerde",
    "FaustSerde",
    "JsonSchemaSerde",
    "JsonSerde",
    "ListSerde",
    "MsgpackSerde",
    "ProtobufSerde",
    "SchemaRegistry",
    "Serde",
    "SessionWindowedSerde",
    "TimeWindowedSerde",
    "serde_for",
]
