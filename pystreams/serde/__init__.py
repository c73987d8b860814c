"""How keys and values become bytes."""

from __future__ import annotations

from pystreams.serde.base import AnySerde, Serde
from pystreams.serde.change import ChangeSerde
from pystreams.serde.lookup import serde_for
from pystreams.serde.primitives import BOOL, BYTES, FLOAT, FLOAT32, INT, INT16, INT32, STR, UUID, VOID
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
    "ChangeSerde",
    "JsonSerde",
    "MsgpackSerde",
    "Serde",
    "SessionWindowedSerde",
    "TimeWindowedSerde",
    "serde_for",
]
