"""What a store is, as data: the topology holds specs, a task opens stores from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Literal

from pystreams.record import NO_HEADERS, Headers
from pystreams.serde.base import AnySerde
from pystreams.state.value_forms import ValueForm, form_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    #: The class of the store. Who does not name it says nothing about it.
    S = TypeVar("S", default=Any)
else:
    from typing import TypeVar

    S = TypeVar("S")

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
#: Kinds that know the timestamps of their changelog.
TIMED_KINDS: Final[frozenset[StoreKind]] = frozenset({*TIMESTAMPED_KINDS, "versioned"})
#: Kinds whose changelog keys end with a window's start and a sequence number.
WINDOWED_KINDS: Final[frozenset[StoreKind]] = frozenset({"window", "timestamped_window", "join_window"})
#: Kinds whose entries expire: windows, and sessions, whose changelog keys end with end and start.
EXPIRING_KINDS: Final[frozenset[StoreKind]] = frozenset({*WINDOWED_KINDS, "session"})

#: The version of the format in which buffers are logged. Source: InMemoryTimeOrderedKeyValueChangeBuffer.
_BUFFER_HEADERS: Final[Headers] = (("v", b"\x03"),)


def value_form(kind: StoreKind, *, headers: bool) -> ValueForm:
    """How values lie in a store. The records of a join have a time of their own only beside headers."""
    timestamped = kind in TIMESTAMPED_KINDS or (headers and kind == "join_window")
    return form_of(timestamped=timestamped, headers=headers)


@dataclass(frozen=True, slots=True)
class StoreSpec(Generic[S]):
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
    #: Values have the headers of their records with them.
    headers: bool = False
    #: Neither disk nor memory was asked for: the setting ``default_dsl_store`` decides.
    persistent_by_default: bool = False
    #: A step of the language made it: the setting ``dsl_store_format`` decides about ``headers``, if it persists.
    of_language: bool = False
    #: Of window stores ``by_time``: Java has no index by key, so ranges of keys come in the order of time, too.
    no_key_index: bool = False
    #: Of versioned stores: how far back versions are kept, and how much of it expires at once (0: as Java chooses).
    history_ms: int | None = None
    segment_ms: int = 0
    #: Of key-value stores in memory: how many entries are kept, those used last; None: all.
    max_entries: int | None = None
    #: The name under which the content lay until now: it is carried over at the next start.
    was: str | None = None

    if TYPE_CHECKING:

        @property
        def opened(self) -> S:
            """The store that a task has of it: there for type checkers, not when it runs."""
            ...

    def in_memory_by_default(self) -> StoreSpec:
        """The store as the setting ``default_dsl_store`` wants it. In memory, the records of a join and who asks in a
        foreign-key join always have headers, as in Java."""
        if not self.persistent_by_default:
            return self
        headers = self.headers or self.kind == "join_window" or self.logs_headers
        return replace(self, persistent=False, persistent_by_default=False, headers=headers)

    def in_headers_format(self) -> StoreSpec:
        """The store as ``dsl_store_format`` wants it. Stores in memory stay as they are, and those of the program.
        Source: KIP-1285, BuiltInDslStoreSuppliers."""
        return replace(self, headers=True) if self.of_language and self.persistent else self

    @property
    def ranges_by_time(self) -> bool:
        """True if ranges of keys of a window store ``by_time`` come in the order of time. With headers Java always has
        an index by key (RocksDbIndexedTimeOrderedWindowBytesStoreSupplier.determineStoreType)."""
        return self.no_key_index and not self.headers

    @property
    def form(self) -> ValueForm:
        """How values lie in the store."""
        return value_form(self.kind, headers=self.headers)

    @property
    def restorable(self) -> bool:
        """True if a topic holds what the store does."""
        return self.logged or self.source_topic is not None

    @property
    def changelog_headers(self) -> Headers:
        """What the values of the changelog have for headers, whatever record they came from."""
        return _BUFFER_HEADERS if self.kind == "buffer" else NO_HEADERS
