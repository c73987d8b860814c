"""The arguments that describe the store of a table. They are the same for all steps that can have a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeAlias, TypedDict

from pystreams.dsl.context import Context
from pystreams.dsl.durations import Duration, milliseconds
from pystreams.dsl.serdes import TypeOrSerde, given_or
from pystreams.dsl.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
from pystreams.errors import TopologyError
from pystreams.nearest import check_keywords
from pystreams.serde.base import AnySerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.names import checked

#: Windows whose end is determined by their start.
AnyTimeWindows: TypeAlias = TimeWindows | UnlimitedWindows | SlidingWindows


class UntypedStoreArguments(TypedDict, total=False):
    """The keyword arguments of a step with a store. ``pystreams.dsl`` describes them."""

    name: str
    was: str
    cached: bool
    logged: bool
    persistent: bool
    changelog_config: Mapping[str, str]
    history: Duration
    history_segment: Duration
    max_entries: int


class StoreArguments(UntypedStoreArguments, total=False):
    """As above, with the types of the table."""

    key: TypeOrSerde[Any]
    value: TypeOrSerde[Any]


class WindowStoreArguments(StoreArguments, total=False):
    """As above, for windowed tables."""

    retention: Duration


class Kept(TypedDict):
    """The arguments of ``StoreSpec`` that say whether the store is persistent."""

    persistent: bool
    persistent_by_default: bool


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The arguments of a step about its store. Source: org.apache.kafka.streams.kstream.Materialized."""

    name: str | None = None
    key: Any = None
    value: Any = None
    cached: bool = True
    logged: bool = True
    persistent: bool | None = None
    retention: Duration | None = None
    changelog_config: Mapping[str, str] | None = None
    history: Duration | None = None
    history_segment: Duration | None = None
    max_entries: int | None = None
    was: str | None = None

    @classmethod
    def of(cls, method: str, arguments: Mapping[str, Any]) -> StoreOptions:
        """The options that ``method`` was called with. Raises ``TypeError`` for an unknown one, as Python does."""
        check_keywords(method, arguments, [field.name for field in fields(cls)])
        options = cls(**arguments)
        if options.was is not None and options.name is None:
            raise TopologyError(
                f"{method} takes was= only with name=",
                hint=f"give the new name of the store, too: name=..., was={options.was!r}",
            )
        return options

    @property
    def kept(self) -> Kept:
        """Whether the store is persistent, and whether that is only the default. Versioned stores are always, as in
        Java."""
        said = self.persistent is not None or self.history is not None
        return {"persistent": self.persistent is not False, "persistent_by_default": not said}

    @property
    def given(self) -> bool:
        """Whether any argument was given: Java then uses up a number for a name, even if the store is never made."""
        return self != StoreOptions()

    def named(self, context: Context, prefix: str) -> StoreName:
        """The given name, or a generated one. ``prefix`` is that of the step."""
        if self.name is not None:
            return StoreName(checked(self.name), True)
        name = context.names.store(prefix)
        context.unnamed_store(name, logged=self.logged)
        return StoreName(name, False)

    def named_for_count(self, context: Context, prefix: str) -> StoreName:
        """As ``named``, for a count. Java uses up an extra number if any argument but the name is given."""
        if self.given and self.name is None:
            context.names.store(prefix)
        return self.named(context, prefix)

    def key_value(self, name: str, key: AnySerde, value: AnySerde) -> StoreSpec:
        """The store of a table. ``key`` and ``value`` are used if these options have no types."""
        if self.retention is not None:
            raise TopologyError(f"store {name} has no windows, so it does not take retention=")
        versioned = self._versioned(name)
        self._check_entries(name)
        return StoreSpec(
            name,
            "versioned" if versioned else "timestamped_key_value",
            given_or(self.key, key),
            given_or(self.value, value),
            **self.kept,
            cached=self.cached and not versioned,
            logged=self.logged,
            changelog_config=self.changelog_config or {},
            of_language=not versioned,
            max_entries=self.max_entries,
            was=self.was,
            **versioned,
        )

    def _check_entries(self, name: str) -> None:
        most: object = self.max_entries
        if most is None:
            return
        if not isinstance(most, int) or isinstance(most, bool) or most < 0:
            raise TopologyError(f"store {name} cannot keep max_entries={most!r}", hint="give a whole number")
        if self.persistent is not False or self.history is not None:
            raise TopologyError(
                f"store {name} takes max_entries= only in memory, and without history=",
                hint="give persistent=False, or leave out max_entries=",
            )

    def _versioned(self, name: str) -> dict[str, Any]:
        """The additional arguments of a versioned store; empty for other stores."""
        if self.history is None:
            if self.history_segment is not None:
                raise TopologyError(f"store {name} keeps no versions, so it does not take history_segment=")
            return {}
        if self.name is None:
            raise TopologyError(
                "a table that keeps a history needs a name for its store",
                where=f"store {name}",
                hint="give name= together with history=",
            )
        segment = self.history_segment
        return {
            "history_ms": milliseconds(self.history, "history"),
            "segment_ms": 0 if segment is None else milliseconds(segment, "history_segment", least=1),
        }

    def window(
        self, name: str, key: AnySerde, value: AnySerde, windows: AnyTimeWindows, *, on_close: bool = False
    ) -> StoreSpec:
        """The store of a windowed table. It keeps windows as long as ``windows`` need them, or longer with
        ``retention``. ``on_close``: results are emitted when the window has closed."""
        return StoreSpec(
            name,
            "timestamped_window",
            given_or(self.key, key),
            given_or(self.value, value),
            **self.kept,
            # As in Java, other windows keep their cache, although it does not delay any results.
            cached=self.cached and not (on_close and isinstance(windows, SlidingWindows)),
            logged=self.logged,
            window_size_ms=windows.size_ms,
            retention_ms=self._retention_ms(name, windows),
            by_time=on_close,
            no_key_index=on_close and not isinstance(windows, SlidingWindows),
            changelog_config=self.changelog_config or {},
            of_language=True,
            was=self.was,
        )

    def session(
        self, name: str, key: AnySerde, value: AnySerde, windows: SessionWindows, *, on_close: bool = False
    ) -> StoreSpec:
        """The store of a table of sessions."""
        return StoreSpec(
            name,
            "session",
            given_or(self.key, key),
            given_or(self.value, value),
            **self.kept,
            cached=self.cached and not on_close,
            logged=self.logged,
            retention_ms=self._retention_ms(name, windows),
            by_time=on_close,
            changelog_config=self.changelog_config or {},
            of_language=True,
            was=self.was,
        )

    def _retention_ms(self, name: str, windows: AnyTimeWindows | SessionWindows) -> int:
        if self.history is not None or self.history_segment is not None:
            raise TopologyError(
                f"store {name} has windows, so it does not take history=", hint="give retention="
            )
        if self.max_entries is not None:
            raise TopologyError(
                f"store {name} has windows, so it does not take max_entries=", hint="give retention="
            )
        least = windows.retention_ms
        retention_ms = least if self.retention is None else milliseconds(self.retention, "retention")
        if retention_ms < least:
            raise TopologyError(
                f"store {name} does not keep its windows long enough: retention={retention_ms} ms",
                why=_WHY_SO_LONG[type(windows)],
                hint=f"give at least retention={least}",
            )
        return retention_ms


_WHY_SO_LONG: dict[type, str] = {
    TimeWindows: "a window accepts records for its size and grace",
    UnlimitedWindows: "its window never ends",
    SlidingWindows: "a record may need windows from twice the time difference before it, and the grace",
    SessionWindows: "a session accepts records for its gap and grace",
}


@dataclass(frozen=True, slots=True)
class StoreName:
    """A store's name. A store can be queried only if the user gave the name."""

    name: str
    by_user: bool
