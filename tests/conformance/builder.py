"""Builds the topology of a scenario with pystreams' own language."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pystreams import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
    Topology,
    UnlimitedWindows,
    WhenFull,
)
from pystreams.processor import ValueTransformer
from pystreams.serde.base import AnySerde
from pystreams.state.stores.factory import Stores
from pystreams.timestamps import ConsumedRecord
from tests.conformance import vocabulary
from tests.conformance.processors import supplier
from tests.conformance.types import STR_KEY, TEXT, KeyType, value_serde
from tests.conformance.vocabulary import ScenarioError, render

Json = Any

_STORE_ARGUMENTS = {"store": "name", "cached": "cached", "logging": "logged", "retention": "retention"}
_HISTORY_ARGUMENTS = {"history": "history", "segment": "history_segment"}
_TIME_IN_VALUE = re.compile("-?[0-9]{1,18}", re.ASCII)


@dataclass
class Result:
    """What a step made: a stream, table, grouped stream or table, or windowed stream, and its types."""

    ref: Any
    key: KeyType
    value: str
    #: "stream", "table", "gstream", "gtable", "cogroup", "windowed grouped" or "windowed cogroup"
    kind: str

    @property
    def store_key(self) -> AnySerde:
        """Of an aggregation's store: a window store's keys are not windowed."""
        key = self.key.inner if self.kind.startswith("windowed") else self.key
        assert key is not None
        return key.serde

    @property
    def serdes(self) -> dict[str, AnySerde]:
        return {"key": self.key.serde, "value": value_serde(self.value)}


class ScenarioBuilder:
    """``sinks`` has the types of all topics that are written, dynamic ones once they are; ``results`` what each step
    gives, by its id."""

    def __init__(self, config: Json) -> None:
        optimize = config.get("optimize", False)
        self._config = StreamsConfig.of(
            application_id="t",
            topology_optimization=optimize if isinstance(optimize, str) else "all" if optimize else "none",
            dsl_store_format=config.get("store_format", "DEFAULT"),
            default_dsl_store="in_memory" if config.get("store_type") == "in_memory" else "rocksDB",
        )
        self.sinks: dict[str, tuple[KeyType, AnySerde]] = {}
        self.results: dict[str, Result] = {}
        self._streams = StreamsBuilder(
            ensure_explicit_internal_resource_naming=config.get("explicit_names", False)
        )

    def build(self, steps: list[Json]) -> Topology:
        for step in steps:
            handle: Callable[[Json], None] | None = getattr(self, f"op_{step['op']}", None)
            if handle is None:
                raise ScenarioError(f"unknown op: {step['op']}")
            handle(step)
        return self._streams.build(self._config)

    def _input(self, step: Json, field: str = "from") -> Result:
        try:
            return self.results[step[field]]
        except KeyError:
            raise ScenarioError(f"no step has the id {step.get(field)}") from None

    def _store(self, step: Json, **types: AnySerde) -> Json:
        """The arguments for a store of the step's own, with ``types`` for it."""
        given = step.get("materialized") or {}
        kind, _, most = given.get("type", "").partition(":")
        arguments: Json = {**types}
        if kind:
            arguments["persistent"] = kind == "rocksdb"
        if most:
            arguments["max_entries"] = int(most)
        for names, place in ((_STORE_ARGUMENTS, given), (_HISTORY_ARGUMENTS, given.get("versioned", {}))):
            arguments |= {ours: place[theirs] for theirs, ours in names.items() if theirs in place}
        return arguments

    def _optional_store(self, step: Json, **types: AnySerde) -> Json:
        """The same for steps that have a store only if one is asked for."""
        return {} if step.get("materialized") is None else self._store(step, **types)

    def _put(self, step: Json, ref: Any, key: KeyType, value: str, kind: str = "stream") -> None:
        self.results[step["id"]] = Result(ref, key, value, kind)

    # Sources and sinks

    def op_stream(self, step: Json) -> None:
        value = step.get("value_type", "str")
        topics = re.compile(step["pattern"]) if "pattern" in step else step["topics"]
        self._put(step, self._streams.stream(topics, **_consumed(step, value)), STR_KEY, value)

    def op_table(self, step: Json) -> None:
        value = step.get("value_type", "str")
        arguments = _consumed(step, value) | self._store(step)
        self._put(step, self._streams.table(step["topic"], **arguments), STR_KEY, value, "table")

    def op_global_table(self, step: Json) -> None:
        value = step.get("value_type", "str")
        arguments = {"key": TEXT, "value": value_serde(value), **_step(step)} | self._store(step)
        self._put(step, self._streams.global_table(step["topic"], **arguments), STR_KEY, value, "global")

    def op_add_store(self, step: Json) -> None:
        kind, persistent = step.get("type", "kv"), step.get("persistent", True)
        common = {"key": TEXT, "value": TEXT, "persistent": persistent, "logged": step.get("logging", True)}
        if kind != "versioned":
            common["cached"] = step.get("cached", False)
        if kind == "window":
            spec = Stores.window_store(
                step["store"],
                size=step.get("size", 10),
                retention=step.get("retention", 86_400_000),
                retain_duplicates=step.get("retain_duplicates", False),
                **common,
            )
        elif kind == "session":
            spec = Stores.session_store(step["store"], retention=step.get("retention", 86_400_000), **common)
        elif kind == "versioned":
            spec = Stores.versioned_store(step["store"], history=step.get("retention", 86_400_000), **common)
        elif kind == "ts_kv":
            spec = Stores.timestamped_key_value_store(step["store"], **common)
        else:
            spec = Stores.key_value_store(step["store"], **common)
        self._streams.add_state_store(spec)

    def op_to(self, step: Json) -> None:
        source = self._input(step)
        types = (source.key, value_serde(source.value))
        if "topic" in step:
            self.sinks[step["topic"]] = types
            source.ref.to(step["topic"], **source.serdes, **_step(step))
            return
        choose, prefix = vocabulary.mapper(step["topic_fn"]), step.get("topic_prefix", "")

        def topic_fn(key: Any, value: Any) -> str:
            topic = f"{prefix}{render(choose(key, value))}"
            self.sinks[topic] = types
            return topic

        source.ref.to(topic_fn, **source.serdes, **_step(step))

    # One by one

    def _filter(self, step: Json) -> None:
        source = self._input(step)
        method = getattr(source.ref, step["op"])
        extra = self._optional_store(step, **source.serdes) if source.kind == "table" else {}
        ref = method(vocabulary.predicate(step["fn"]), **_step(step), **extra)
        self._put(step, ref, source.key, source.value, source.kind)

    op_filter = op_filter_not = _filter

    def op_map_values(self, step: Json) -> None:
        source = self._input(step)
        extra = {"value": TEXT}
        if source.kind == "table":
            extra = self._optional_store(step, key=source.key.serde, value=TEXT)
        ref = source.ref.map_values(vocabulary.mapper(step["fn"]), **extra, **_step(step))
        self._put(step, ref, source.key, "str", source.kind)

    def op_transform_values(self, step: Json) -> None:
        source = self._input(step)
        mapper = vocabulary.mapper(step["fn"])
        extra = self._optional_store(step, key=source.key.serde, value=TEXT)
        ref = source.ref.transform_values(lambda: _Transformer(mapper), **extra, **_step(step))
        self._put(step, ref, source.key, "str", "table")

    def op_map(self, step: Json) -> None:
        source = self._input(step)
        pair, key, value = _pair_mapper(step, source)
        self._put(
            step, source.ref.map(pair, key=key.serde, value=value_serde(value), **_step(step)), key, value
        )

    def op_flat_map(self, step: Json) -> None:
        source = self._input(step)
        elements = vocabulary.flat(step["fn"])
        key_fn = vocabulary.mapper(step["key_fn"]) if "key_fn" in step else None

        def pairs(key: Any, value: Any) -> list[tuple[Any, Any]]:
            return [(key if key_fn is None else key_fn(key, e), e) for e in elements(key, value)]

        key = source.key if key_fn is None else STR_KEY
        self._put(step, source.ref.flat_map(pairs, key=key.serde, value=TEXT, **_step(step)), key, "str")

    def op_flat_map_values(self, step: Json) -> None:
        source = self._input(step)
        ref = source.ref.flat_map_values(vocabulary.flat(step["fn"]), value=TEXT, **_step(step))
        self._put(step, ref, source.key, "str")

    def op_select_key(self, step: Json) -> None:
        source = self._input(step)
        function = vocabulary.mapper(step.get("fn", "key_str"))
        self._put(step, source.ref.select_key(function, key=TEXT, **_step(step)), STR_KEY, source.value)

    op_unwindow = op_select_key

    def op_peek(self, step: Json) -> None:
        source = self._input(step)
        ref = source.ref.peek(lambda value: None, **_step(step))
        self._put(step, ref, source.key, source.value)

    def op_merge(self, step: Json) -> None:
        one, other = self._input(step), self._input(step, "with")
        value = one.value if one.value == other.value else "str"
        self._put(step, one.ref.merge(other.ref, **_step(step)), one.key, value)

    def op_split(self, step: Json) -> None:
        source = self._input(step)
        split = source.ref.split(**_step(step))
        for branch in step["branches"]:
            ref = split.branch(vocabulary.predicate(branch["fn"]), **_branch_name(branch))
            self._put(branch, ref, source.key, source.value)
        if "default" in step:
            ref = split.default(**_branch_name(step["default"]))
            self._put(step["default"], ref, source.key, source.value)

    def op_repartition(self, step: Json) -> None:
        source = self._input(step)
        extra = {name: step[name] for name in ("name", "partitions") if name in step}
        self._put(step, source.ref.repartition(**source.serdes, **extra), source.key, source.value)

    def _process(self, step: Json) -> None:
        source = self._input(step)
        stores = step.get("stores", [])
        fixed_key = step["op"] == "process_values"
        types = {"value": TEXT} if fixed_key else {"key": source.key.serde, "value": TEXT}
        method = getattr(source.ref, step["op"])
        connected = [] if step.get("global_store") else stores
        ref = method(
            supplier(step["processor"], stores, fixed_key=fixed_key), stores=connected, **types, **_step(step)
        )
        self._put(step, ref, source.key, "str")

    op_process = op_process_values = _process

    # Between streams and tables

    def op_to_table(self, step: Json) -> None:
        source = self._input(step)
        ref = source.ref.to_table(**_step(step), **self._store(step, **source.serdes))
        self._put(step, ref, source.key, source.value, "table")

    def op_to_stream(self, step: Json) -> None:
        source = self._input(step)
        if "key_fn" in step:
            ref = source.ref.to_stream(vocabulary.mapper(step["key_fn"]), key=TEXT, **_step(step))
            self._put(step, ref, STR_KEY, source.value)
        else:
            self._put(step, source.ref.to_stream(**_step(step)), source.key, source.value)

    def op_suppress(self, step: Json) -> None:
        source = self._input(step)
        bounds = {name: step[name] for name in ("max_records", "max_bytes") if name in step}
        buffer = {**bounds, "logged": step.get("logging", True)}
        if step["until"] == "window_closes":
            until = Suppressed.until_window_closes(**buffer)
        else:
            full = WhenFull(step.get("full", "emit_early"))
            until = Suppressed.until_time_limit(step["wait"], when_full=full, **buffer)
        self._put(step, source.ref.suppress(until, **_step(step)), source.key, source.value, "table")

    def _join(self, step: Json) -> None:
        one, other = self._input(step), self._input(step, "with")
        method, joiner = getattr(one.ref, step["op"]), vocabulary.joiner(step["fn"])
        if one.kind == "table":
            extra = self._optional_store(step, key=one.key.serde, value=TEXT)
            # Kafka has no key for the joiner there.
            ref = method(other.ref, lambda left, right: joiner(None, left, right), **extra, **_step(step))
        elif other.kind == "stream":
            extra: Json = {"persistent": step["type"] != "in_memory"} if "type" in step else {}
            extra |= {ours: step[theirs] for theirs, ours in _STORE_ARGUMENTS.items() if theirs in step}
            extra |= {"key": one.key.serde, "windows": _join_windows(step["windows"])}
            ref = method(other.ref, joiner, value=TEXT, **extra, **_step(step))
        else:
            extra = {"key_fn": vocabulary.mapper(step["key_fn"])} if other.kind == "global" else {}
            extra |= {"grace": step["grace"]} if "grace" in step else {}
            ref = method(other.ref, joiner, value=TEXT, **extra, **_step(step))
        self._put(step, ref, one.key, "str", one.kind)

    op_join = op_left_join = op_outer_join = _join

    def _foreign_key_join(self, step: Json) -> None:
        one, other = self._input(step), self._input(step, "with")
        method = one.ref.join if step["op"] == "fk_join" else one.ref.left_join
        joiner = vocabulary.joiner(step["fn"])
        ref = method(
            other.ref,
            lambda left, right: joiner(None, left, right),
            foreign_key=vocabulary.mapper(step["key_fn"]),
            **self._store(step, key=one.key.serde, value=TEXT),
            **_step(step),
        )
        self._put(step, ref, one.key, "str", "table")

    op_fk_join = op_fk_left_join = _foreign_key_join

    # Aggregations

    def op_group_by_key(self, step: Json) -> None:
        source = self._input(step)
        ref = source.ref.group_by_key(**source.serdes, **_repartition(step))
        self._put(step, ref, source.key, source.value, "gstream")

    def op_group_by(self, step: Json) -> None:
        source = self._input(step)
        if source.kind == "stream":
            types = {"key": TEXT, "value": value_serde(source.value)}
            ref = source.ref.group_by(vocabulary.mapper(step["key_fn"]), **types, **_repartition(step))
            self._put(step, ref, STR_KEY, source.value, "gstream")
            return
        pair, key, value = _pair_mapper(step, source)
        types = {"key": key.serde, "value": value_serde(value)}
        self._put(step, source.ref.group_by(pair, **types, **_repartition(step)), key, value, "gtable")

    def op_windowed_by(self, step: Json) -> None:
        source, windows = self._input(step), _windows(step["windows"])
        ref = source.ref.windowed_by(windows)
        if step.get("emit") == "close":
            ref = ref.emit_strategy(EmitStrategy.on_window_close())
        elif step.get("emit") == "update":
            ref = ref.emit_strategy(EmitStrategy.on_window_update())
        size = None if isinstance(windows, SessionWindows) else windows.size_ms
        kind = "cogroup" if source.kind == "cogroup" else "grouped"
        self._put(step, ref, source.key.windowed(size), source.value, f"windowed {kind}")

    def op_cogroup(self, step: Json) -> None:
        first, *others = step["groups"]
        group = self._input(first)
        ref = group.ref.cogroup(vocabulary.aggregator(first["fn"]))
        for other in others:
            ref = ref.cogroup(self._input(other).ref, vocabulary.aggregator(other["fn"]))
        self._put(step, ref, group.key, "str", "cogroup")

    def op_count(self, step: Json) -> None:
        source = self._input(step)
        ref = source.ref.count(**_step(step), **self._store(step, key=source.store_key))
        self._put(step, ref, source.key, "int", "table")

    def op_reduce(self, step: Json) -> None:
        source = self._input(step)
        functions = [vocabulary.reducer(step[name]) for name in ("fn", "sub_fn") if name in step]
        types = {"key": source.store_key, "value": TEXT}
        ref = source.ref.reduce(*functions, **_step(step), **self._store(step, **types))
        self._put(step, ref, source.key, "str", "table")

    def op_aggregate(self, step: Json) -> None:
        source = self._input(step)
        initial = step.get("init", "")
        names = () if source.kind.endswith("cogroup") else ("fn", "sub_fn")
        functions = [vocabulary.aggregator(step[name]) for name in names if name in step]
        if "merge_fn" in step:
            functions.append(vocabulary.merger(step["merge_fn"]))
        types = {"key": source.store_key, "value": TEXT}
        ref = source.ref.aggregate(lambda: initial, *functions, **_step(step), **self._store(step, **types))
        self._put(step, ref, source.key, "str", "table")


class _Transformer(ValueTransformer[Any, Any, Any]):
    """A mapper as a transformer."""

    def __init__(self, mapper: Callable[[Any, Any], Any]) -> None:
        self._mapper = mapper

    def transform(self, key: Any, value: Any) -> Any:
        return self._mapper(key, value)


def _windows(spec: Json) -> TimeWindows | SlidingWindows | SessionWindows | UnlimitedWindows:
    grace = spec.get("grace", 0)
    if spec["type"] == "session":
        return SessionWindows.of(spec["gap"], grace=grace)
    if spec["type"] == "sliding":
        return SlidingWindows.of(spec["diff"], grace=grace)
    if spec["type"] == "unlimited":
        return UnlimitedWindows.of(start=spec.get("start", 0))
    return TimeWindows.hopping(spec["size"], advance=spec.get("advance", spec["size"]), grace=grace)


def _join_windows(spec: Json) -> JoinWindows:
    before, after = spec.get("before", 0), spec.get("after", 0)
    windows = JoinWindows.of(spec.get("diff", max(0, before, after)), grace=spec.get("grace", 0))
    if "before" in spec:
        windows = windows.before(before)
    return windows.after(after) if "after" in spec else windows


def _consumed(step: Json, value: str) -> Json:
    arguments: Json = {"key": TEXT, "value": value_serde(value), **_step(step)}
    if "timestamp_extractor" in step:
        arguments["timestamp_extractor"] = extractor(step["timestamp_extractor"])
    return arguments


def _step(step: Json) -> Json:
    return {"step": step["name"]} if "name" in step else {}


def _repartition(step: Json) -> Json:
    return {"repartition": step["name"]} if "name" in step else {}


def _branch_name(branch: Json) -> Json:
    return {"name": branch["name"]} if "name" in branch else {}


def _pair_mapper(step: Json, source: Result) -> tuple[Callable[[Any, Any], tuple[Any, Any]], KeyType, str]:
    """A mapper to (key, value) from ``key_fn`` and ``fn``, of which either may be missing."""
    key_fn = vocabulary.mapper(step["key_fn"]) if "key_fn" in step else lambda key, value: key
    value_fn = vocabulary.mapper(step["fn"]) if "fn" in step else lambda key, value: value
    return (
        lambda key, value: (key_fn(key, value), value_fn(key, value)),
        STR_KEY if "key_fn" in step else source.key,
        "str" if "fn" in step else source.value,
    )


def extractor(name: str) -> Any:
    """A built-in extractor by its name, or the one that reads the time from the value."""
    return _time_in_value if name == "value_ts" else name


def _time_in_value(record: ConsumedRecord, partition_time: int) -> int:
    text = render(record.value).rpartition("@")[2]
    return int(text) if "@" in render(record.value) and _TIME_IN_VALUE.fullmatch(text) else record.timestamp
