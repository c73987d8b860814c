"""Store specs: the topology describes stores as data, and a task opens stores from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Literal

from pystreams.record import NO_HEADERS, Headers
from pystreams.serde.base import AnySerde
from pystreams.state.value_forms import ValueForm, form_of

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    #: The class of the store. A caller that does not name it gets Any.
    S = TypeVar("S", default=Any)
else:
    from typing import TypeVar

    S = TypeVar("S")

#: The kinds of stores. ``stores.kinds`` opens each. A kind that is in none of the sets below has values without
#: timestamps, and its entries never expire; search for ``.kind`` to find the other places where kinds differ.
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


#: Kinds whose values have a timestamp before them; in the changelog it is the record's timestamp.
TIMESTAMPED_KINDS: Final[frozenset[StoreKind]] = frozenset({"timestamped_key_value", "timestamped_window"})
#: Kinds that keep the timestamps of their changelog.
TIMED_KINDS: Final[frozenset[StoreKind]] = frozenset({*TIMESTAMPED_KINDS, "versioned"})
#: Kinds whose changelog keys end with a window's start and a sequence number.
WINDOWED_KINDS: Final[frozenset[StoreKind]] = frozenset({"window", "timestamped_window", "join_window"})
#: Kinds whose entries expire: windows, and sessions, whose changelog keys end with the session's end and start.
EXPIRING_KINDS: Final[frozenset[StoreKind]] = frozenset({*WINDOWED_KINDS, "session"})

#: The headers of a buffer's changelog records: the format version. Source: InMemoryTimeOrderedKeyValueChangeBuffer.
_BUFFER_HEADERS: Final[Headers] = (("v", b"\x03"),)


def value_form(kind: StoreKind, *, headers: bool) -> ValueForm:
    """The form of values in a store. Stores of joins keep the records' times only together with headers."""
    timestamped = kind in TIMESTAMPED_KINDS or (headers and kind == "join_window")
    return form_of(timestamped=timestamped, headers=headers)


@dataclass(frozen=True, slots=True)
class StoreSpec(Generic[S]):
    """Name, kind, serdes and behaviour of a store.

    ``window_size_ms``, ``retention_ms`` and ``retain_duplicates`` are for window stores, ``retention_ms`` also for
    session stores. ``by_time``: they are also read in the order of time, for which persistent stores need an index.
    ``changelog_config`` are topic settings that override the defaults. A ``join_window`` store keeps the records of one
    side of a stream-stream join, a ``join_buffer`` store those that wait for a table, both for ``retention_ms``.
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
    #: The input topic from which the store is restored, because it has the same contents. Then the store has no
    #: changelog.
    source_topic: str | None = None

    #: Changelog records have the headers of the current record, as in Java for some stores. Nothing reads them.
    logs_headers: bool = False
    #: Values are stored together with the headers of their records.
    headers: bool = False
    #: The program did not choose between disk and memory: the setting ``default_dsl_store`` decides.
    persistent_by_default: bool = False
    #: A DSL step has created the store: if it is persistent, the setting ``dsl_store_format`` decides about
    #: ``headers``.
    of_language: bool = False
    #: For window stores ``by_time``: Java has no index by key, so ranges of keys are in the order of time, too.
    no_key_index: bool = False
    #: For versioned stores: how far back versions are kept, and how much expires at once (0: as in Java).
    history_ms: int | None = None
    segment_ms: int = 0
    #: For key-value stores in memory: the maximum number of entries, the most recently used ones; None: no limit.
    max_entries: int | None = None
    #: The former name of the store, whose content is carried over at the next start.
    was: str | None = None

    if TYPE_CHECKING:

        @property
        def opened(self) -> S:
            """The type of the opened store: for type checkers only, not called at run time."""
            ...

    def in_memory_by_default(self) -> StoreSpec:
        """The store after ``default_dsl_store=in_memory`` was applied. As in Java, in-memory stores of stream-stream
        and foreign-key joins always keep headers."""
        if not self.persistent_by_default:
            return self
        headers = self.headers or self.kind == "join_window" or self.logs_headers
        return replace(self, persistent=False, persistent_by_default=False, headers=headers)

    def in_headers_format(self) -> StoreSpec:
        """The store after ``dsl_store_format=HEADERS`` was applied. It does not affect in-memory stores and stores of
        the program. Source: KIP-1285, BuiltInDslStoreSuppliers."""
        return replace(self, headers=True) if self.of_language and self.persistent else self

    @property
    def ranges_by_time(self) -> bool:
        """Whether ranges of keys of a window store ``by_time`` are in the order of time. With headers Java always has
        an index by key (RocksDbIndexedTimeOrderedWindowBytesStoreSupplier.determineStoreType)."""
        return self.no_key_index and not self.headers

    @property
    def form(self) -> ValueForm:
        """The form of values in the store."""
        return value_form(self.kind, headers=self.headers)

    @property
    def restorable(self) -> bool:
        """Whether a topic has the store's contents."""
        return self.logged or self.source_topic is not None

    @property
    def changelog_headers(self) -> Headers:
        """The headers of all changelog records, whatever the headers of the original records were."""
        return _BUFFER_HEADERS if self.kind == "buffer" else NO_HEADERS
