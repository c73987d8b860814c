"""Builds the join of two streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from pystreams.dsl.context import Context, StepPlace
from pystreams.dsl.join_windows import JoinWindows
from pystreams.dsl.materialized import StoreOptions
from pystreams.dsl.operators.stateless import Forward
from pystreams.dsl.operators.stream_join import KeepForJoin, SelfJoin, StreamJoin
from pystreams.dsl.operators.value_getter import JoinKind
from pystreams.dsl.serdes import common, returned_by
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde import serde_for
from pystreams.serde.base import AnySerde
from pystreams.serde.join_side import SideValueSerde, WaitingKeySerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.deferred import DeferredSerde, wrapped
from pystreams.topology.fingerprint import same_setting
from pystreams.topology.graph import JoinGraphNode, ProcessorGraphNode
from pystreams.topology.names import checked

if TYPE_CHECKING:
    from pystreams.dsl.stream_join_methods import Joins

_METHODS = {JoinKind.INNER: "join", JoinKind.LEFT: "left_join", JoinKind.OUTER: "outer_join"}


class JoinStoreArguments(TypedDict, total=False):
    """The keyword arguments for the stores of a join of streams. ``pystreams.dsl`` describes them."""

    name: str
    was: str
    logged: bool
    persistent: bool
    changelog_config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of a join, generated in Java's order. Source: KStreamImplJoin.join."""

    kept: tuple[str, str]
    sides: tuple[str, str]
    merge: str
    stores: tuple[str, str]
    waiting: str

    @classmethod
    def drawn(cls, context: Context, step: str | None, store: str | None, kind: JoinKind) -> _Names:
        names = context.names
        left_needed, right_needed = kind.value
        suffixes = _suffixes(kind)
        kept = (
            names.step("KSTREAM-WINDOWED-", None if step is None else f"{step}-this-windowed"),
            names.step("KSTREAM-WINDOWED-", None if step is None else f"{step}-other-windowed"),
        )
        generated = (
            names.step("KSTREAM-JOINTHIS-" if left_needed else "KSTREAM-OUTERTHIS-"),
            names.step("KSTREAM-JOINOTHER-" if right_needed else "KSTREAM-OUTEROTHER-"),
        )
        merge = names.step("KSTREAM-MERGE-", None if step is None else f"{step}-merge")
        if store is None:
            number = generated[0].rpartition("-")[2]
            stores = (f"{generated[0]}-store", f"{generated[1]}-store", f"KSTREAM-OUTERSHARED-{number}-store")
        else:
            stores = _store_names(store, kind)
        return cls(
            kept,
            generated if step is None else (checked(step + suffixes[0]), checked(step + suffixes[1])),
            merge,
            stores[:2],
            stores[2],
        )


def _suffixes(kind: JoinKind) -> tuple[str, str]:
    left_needed, right_needed = kind.value
    return (
        "-this-join" if left_needed else "-outer-this-join",
        "-other-join" if right_needed else "-outer-other-join",
    )


def _store_names(name: str, kind: JoinKind) -> tuple[str, str, str]:
    """The stores of a join with ``name=``: those of both sides, and that of unmatched records."""
    this, other = _suffixes(kind)
    waiting = "-left-shared-join" if kind.value[0] else "-outer-shared-join"
    return f"{name}{this}-store", f"{name}{other}-store", f"{name}{waiting}-store"


def joined(
    this: Joins[Any, Any],
    other: Joins[Any, Any],
    joiner: Callable[..., Any],
    kind: JoinKind,
    windows: object,
    types: tuple[Any, Any],
    step: str | None,
    arguments: Mapping[str, Any],
) -> StepPlace:
    """The place after ``this`` is joined with ``other``. ``types`` are the given types of keys and results.

    Source: KStreamImpl.doJoin, KStreamImplJoin.
    """
    method = _METHODS[kind]
    options = _options(method, arguments)
    windows = _windows(method, windows)
    key = _key_serde(this._place, other._place, method) if types[0] is None else serde_for(types[0])
    left, right = (
        side._repartitioned_for_join(None if step is None else f"{step}-{name}", key)
        if side._place.needs_repartition
        else side._place
        for side, name in ((this, "left"), (other, "right"))
    )
    sources = left.copartitioned_with(right)
    context = left.context
    names = _Names.drawn(context, step, options.name, kind)
    function = UserFunction.of(joiner, "join", f"{method} {names.merge}")
    was = (None, None, None) if options.was is None else _store_names(options.was, kind)
    stores = [
        _kept(name, options, key, place.value, windows, before)
        for name, place, before in zip(names.stores, (left, right), was, strict=False)
    ]
    waiting = (
        None
        if kind is JoinKind.INNER
        else _waiting(names.waiting, options, key, left.value, right.value, was[2])
    )
    if options.name is None:
        for spec in filter(None, (*stores, waiting)):
            context.unnamed_store(spec.name, logged=spec.logged)
    for name, place, store in zip(names.kept, (left, right), stores, strict=True):
        place.add(ProcessorGraphNode(name, KeepForJoin(store.name), store))
    left_needed, right_needed = kind.value
    shared, both = None if waiting is None else waiting.name, [] if waiting is None else [waiting]
    sides = (
        StreamJoin(stores[1].name, shared, function, windows, outer=not right_needed, right=False),
        StreamJoin(stores[0].name, shared, function, windows, outer=not left_needed, right=True),
    )
    node = JoinGraphNode(
        names.merge,
        (
            (names.sides[0], names.kept[0], sides[0], (stores[1], *both)),
            (names.sides[1], names.kept[1], sides[1], (stores[0], *both)),
        ),
        Forward(),
        with_itself=(SelfJoin(stores[0].name, function, windows), stores[0]),
        keeps_null_keys=kind is not JoinKind.INNER,
    )
    context.graph.add(node, left.node, right.node)
    value = returned_by(types[1], f"the value that {names.merge} computes", function, left.value, right.value)
    return StepPlace(context, names.merge, node, sources, key, value)


def refuse_stream_arguments(method: str, windows: object, key: object, arguments: Mapping[str, Any]) -> None:
    """Raise ``TopologyError`` if a join with a table has arguments that are only for joins of two streams."""
    given = [name for name, value in (("windows", windows), ("key", key)) if value is not None]
    given += arguments
    if given:
        raise TopologyError(
            f"{method} with a table does not take {', '.join(f'{name}=' for name in given)}",
            why="a record is joined with the current row; only joins of two streams have windows",
            hint="join with a stream, or leave out the argument",
        )


def _options(method: str, arguments: Mapping[str, Any]) -> StoreOptions:
    options = StoreOptions.of(method, arguments)
    if options.name is not None:
        checked(options.name)
    foreign = [name for name in arguments if name not in JoinStoreArguments.__annotations__]
    if foreign:
        raise TopologyError(
            f"{method} of two streams does not take {', '.join(f'{name}=' for name in foreign)}",
            why="its stores are never cached, and keep records for the size and grace of the windows",
        )
    return options


def _windows(method: str, windows: object) -> JoinWindows:
    if isinstance(windows, JoinWindows):
        return windows
    if windows is None:
        raise TopologyError(
            f"{method} of two streams needs windows=",
            why="the windows are the largest difference in time of two joined records",
            hint="windows=JoinWindows.of(timedelta(minutes=5)); to join with the latest value of a key instead, make "
            "one stream a table with to_table()",
        )
    raise TopologyError(
        f"{method} of two streams takes JoinWindows, not {type(windows).__name__}",
        hint="windows=JoinWindows.of(timedelta(minutes=5))",
    )


def _key_serde(this: StepPlace, other: StepPlace, method: str) -> AnySerde:
    """The serde of the keys of both streams, which are compared by their bytes."""
    one, two = this.key, other.key
    if same_setting(one, two):
        return one
    known = [serde for serde in (one, two) if not isinstance(serde, DeferredSerde)]
    if len(known) == 1:
        return known[0]
    if not known:
        return common(one, two, f"the keys that {method} of {this.name} and {other.name} compares")
    raise TopologyError(
        f"{method} compares keys of different types: {one!r} of {this.name}, {two!r} of {other.name}",
        why="keys are compared by their bytes",
        hint="select_key(...) makes keys of another type; if the bytes are equal, give the type with key=",
    )


def _kept(
    name: str,
    options: StoreOptions,
    key: AnySerde,
    value: AnySerde,
    windows: JoinWindows,
    was: str | None,
) -> StoreSpec:
    """The store of one side. Each record has its own key in the changelog, so that compaction would have no effect."""
    return StoreSpec(
        name,
        "join_window",
        key,
        value,
        **options.kept,
        logged=options.logged,
        window_size_ms=windows.size_ms,
        retention_ms=windows.retention_ms,
        retain_duplicates=True,
        # A store in memory always keeps headers, as in Java.
        headers=options.persistent is False,
        of_language=True,
        changelog_config={**(options.changelog_config or {}), "cleanup.policy": "delete"},
        was=was,
    )


def _waiting(
    name: str, options: StoreOptions, key: AnySerde, left: AnySerde, right: AnySerde, was: str | None
) -> StoreSpec:
    """The store of unmatched records."""
    value = wrapped(left, lambda one: wrapped(right, lambda two: SideValueSerde(one, two)))
    return StoreSpec(
        name,
        "list",
        wrapped(key, WaitingKeySerde),
        value,
        **options.kept,
        logged=options.logged,
        changelog_config=dict(options.changelog_config or {}),
        was=was,
    )
