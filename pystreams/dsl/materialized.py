"""The store of a table: the arguments that describe it, the same for all steps that can have one."""

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

#: Windows with an end that follows from their start.
AnyTimeWindows: TypeAlias = TimeWindows | UnlimitedWindows | SlidingWindows


class UntypedStoreArguments(TypedDict, total=False):
    """The keyword arguments of a step that has a store; what they mean stands in ``pystreams.dsl``."""

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
    """The same with the types of the table."""

    key: TypeOrSerde[Any]
    value: TypeOrSerde[Any]


class WindowStoreArguments(StoreArguments, total=False):
    """The same for windowed tables."""

    retention: Duration


class Kept(TypedDict):
    """Where a store is, as ``StoreSpec`` takes it."""

    persistent: bool
    persistent_by_default: bool


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """What a step was told about its store. Source: org.apache.kafka.streams.kstream.Materialized."""

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
        """The options that ``method`` was called with. Raises ``TypeError`` for an unknown one, as a call would."""
        check_keywords(method, arguments, [field.name for field in fields(cls)])
        options = cls(**arguments)
        if options.was is not None and options.name is None:
            raise TopologyError(
                f"{method} takes was= only with name=",
                hint=f"give the store the name that it is to have from now on: name=..., was={options.was!r}",
            )
        return options

    @property
    def kept(self) -> Kept:
        """Where the store is, and whether that was said. Java has stores with versions on disk only."""
        said = self.persistent is not None or self.history is not None
        return {"persistent": self.persistent is not False, "persistent_by_default": not said}

    @property
    def given(self) -> bool:
        """True if any argument was: Java then draws a number for a name, even for a store that is never made."""
        return self != StoreOptions()

    def named(self, context: Context, prefix: str) -> StoreName:
        """The name, or a generated one. ``prefix`` is that of the step."""
        if self.name is not None:
            return StoreName(checked(self.name), True)
        name = context.names.store(prefix)
        context.unnamed_store(name, logged=self.logged)
        return StoreName(name, False)

    def named_for_count(self, context: Context, prefix: str) -> StoreName:
        """The same for a count. Java draws a number too many if anything but the name is given, for ever so."""
        if self.given and self.name is None:
            context.names.store(prefix)
        return self.named(context, prefix)

    def key_value(self, name: str, key: AnySerde, value: AnySerde) -> StoreSpec:
        """The store of a table. ``key`` and ``value`` are for what was not given here."""
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
            raise TopologyError(f"store {name} cannot keep max_entries={most!r}", hint="give a number")
        if self.persistent is not False or self.history is not None:
            raise TopologyError(
                f"store {name} takes max_entries= only in memory, and without history=",
                hint="give persistent=False, or leave max_entries= out",
            )

    def _versioned(self, name: str) -> dict[str, Any]:
        """What a versioned store has besides; empty for another one."""
        if self.history is None:
            if self.history_segment is not None:
                raise TopologyError(f"store {name} keeps no versions, so it does not take history_segment=")
            return {}
        if self.name is None:
            raise TopologyError(
                "a table that keeps a history needs a name for its store",
                where=f"store {name}",
                hint="give name=, besides history=",
            )
        segment = self.history_segment
        return {
            "history_ms": milliseconds(self.history, "history"),
            "segment_ms": 0 if segment is None else milliseconds(segment, "history_segment", least=1),
        }

    def window(
        self, name: str, key: AnySerde, value: AnySerde, windows: AnyTimeWindows, *, on_close: bool = False
    ) -> StoreSpec:
        """The store of a windowed table. It keeps windows as long as ``windows`` need it, or longer if ``retention``
        says so. ``on_close``: they are emitted when they have closed."""
        return StoreSpec(
            name,
            "timestamped_window",
            given_or(self.key, key),
            given_or(self.value, value),
            **self.kept,
            # As in Java, a cache before other windows stays, though nothing waits in it to be emitted.
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
        """The same for sessions."""
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
                f"store {name} keeps its windows too short: retention={retention_ms} ms",
                why=_WHY_SO_LONG[type(windows)],
                hint=f"at least retention={least}",
            )
        return retention_ms


_WHY_SO_LONG: dict[type, str] = {
    TimeWindows: "a window takes records for its size and grace",
    UnlimitedWindows: "its window never ends",
    SlidingWindows: "a record may need windows from twice the time difference before it, and the grace",
    SessionWindows: "a session takes records for its gap and grace",
}


@dataclass(frozen=True, slots=True)
class StoreName:
    """A store's name. Only stores that the user named can be queried."""

    name: str
    by_user: bool
