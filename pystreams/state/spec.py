"""What a store is, as data: the topology holds specs, a task opens stores from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pystreams.serde.base import AnySerde

StoreKind = Literal[
    "key_value",
    "timestamped_key_value",
    "window",
    "timestamped_window",
    "session",
    "versioned",
    "list",
    "buffer",
]


#: Kinds whose values have a timestamp before them, which their changelog has as the record's.
TIMESTAMPED_KINDS: Final[frozenset[StoreKind]] = frozenset({"timestamped_key_value", "timestamped_window"})
#: Kinds whose changelog keys end with a window's start and a sequence number.
WINDOWED_KINDS: Final[frozenset[StoreKind]] = frozenset({"window", "timestamped_window"})


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """Name, kind, serdes and behaviour of a store.

    ``window_size_ms``, ``retention_ms`` and ``retain_duplicates`` are for window stores. ``changelog_config`` are topic
    settings that override the defaults.
    """

    name: str
    kind: StoreKind
    key_serde: AnySerde
    value_serde: AnySerde
    persistent: bool = True
    cached: bool = False
    logged: bool = True
    window_size_ms: int = 0
    retention_ms: int = 0
    retain_duplicates: bool = False
    changelog_config: Mapping[str, str] = field(default_factory=dict)
