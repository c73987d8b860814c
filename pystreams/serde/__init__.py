"""How keys and values become bytes."""

from __future__ import annotations

from pystreams.serde.base import AnySerde, Serde
from pystreams.serde.change import ChangeSerde
from pystreams.serde.lookup import serde_for
from pystreams.serde.primitives import BOOL, BYTES, FLOAT, INT, STR, UUID
from pystreams.serde.structured import JsonSerde, MsgpackSerde
from pystreams.serde.windowed import TimeWindowedSerde

__all__ = [
    "BOOL",
    "BYTES",
    "FLOAT",
    "INT",
    "STR",
    "UUID",
    "AnySerde",
    "ChangeSerde",
    "JsonSerde",
    "MsgpackSerde",
    "Serde",
    "TimeWindowedSerde",
    "serde_for",
]
