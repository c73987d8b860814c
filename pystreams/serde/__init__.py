"""How keys and values become bytes."""

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
