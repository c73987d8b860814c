"""What a store is, as data: the topology holds specs, a task opens stores from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pystreams.record import NO_HEADERS, Headers
from pystreams.serde.base import AnySerde

StoreKind = Literal[
    "key_value",
    "timestamped_key_value",
    "window",
    "timestamped_window",
    "join_window",
    "session",
    "versioned",
    "list",
    "buffer",
    "join_buffer",
]


#: Kinds whose values have a timestamp before them, which their changelog has as the record's.
TIMESTAMPED_KINDS: Final[frozenset[StoreKind]] = frozenset({"timestamped_key_value", "timestamped_window"})
#: Kinds whose changelog keys end with a window's start and a sequence number.
WINDOWED_KINDS: Final[frozenset[StoreKind]] = frozenset({"window", "timestamped_window", "join_window"})
#: Kinds whose entries expire: windows, and sessions, whose changelog keys end with end and start.
EXPIRING_KINDS: Final[frozenset[StoreKind]] = frozenset({*WINDOWED_KINDS, "session"})

#: The version of the format in which buffers are logged. Source: InMemoryTimeOrderedKeyValueChangeBuffer.
_BUFFER_HEADERS: Final[Headers] = (("v", b"\x03"),)


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """Name, kind, serdes and behaviour of a store.

    ``window_size_ms``, ``retention_ms`` and ``retain_duplicates`` are for window stores, ``retention_ms`` for session
    stores, too. ``by_time``: they are also read in the order of time, which persistent ones need an index for.
    ``changelog_config`` are topic settings that override the defaults. A ``join_window`` store keeps the records of
    one side of a join of streams, a ``join_buffer`` those that wait for a table, as long as ``retention_ms``.
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
    by_time: bool = False
    changelog_config: Mapping[str, str] = field(default_factory=dict)
    #: The input topic that the store is restored from, because it holds just that. It then has no changelog.
    source_topic: str | None = None

    #: The changelog has the headers of the records at work. Nothing reads them: Java logs them for some stores.
    logs_headers: bool = False
    #: Of versioned stores: how far back versions are kept, and how much of it expires at once (0: as Java chooses).
    history_ms: int | None = None
    segment_ms: int = 0
    #: Of key-value stores in memory: how many entries are kept, those used last; None: all.
    max_entries: int | None = None

    @property
    def restorable(self) -> bool:
        """True if a topic holds what the store does."""
        return self.logged or self.source_topic is not None

    @property
    def changelog_headers(self) -> Headers:
        """What the values of the changelog have for headers, whatever record they came from."""
        return _BUFFER_HEADERS if self.kind == "buffer" else NO_HEADERS
