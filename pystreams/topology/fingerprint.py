"""A digest of the topology: two runs with equal digests execute the same topology."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from itertools import zip_longest
from typing import Any

from pystreams.functions import UserFunction
from pystreams.serde.base import Serde, schema_of
from pystreams.state.spec import StoreSpec
from pystreams.topology.built import BuiltTopology, GlobalStore, SubTopology
from pystreams.topology.changed_schemas import difference, is_schema
from pystreams.topology.declared_rows import DECLARED, entry_of_declared_rows
from pystreams.topology.deferred import DeferredSerde
from pystreams.topology.former_names import entry_of_former_names
from pystreams.topology.nodes import ProcessorNode, SinkNode, SourceNode

#: The version of shapes. It is raised when the shape of an unchanged topology changes.
_VERSION = 2

#: The entries of shapes for explanations alone.
_NOT_COVERED = frozenset({"headers", "was", DECLARED})


def fingerprint(subtopologies: Sequence[SubTopology], global_stores: Sequence[GlobalStore]) -> str:
    """SHA-256 in hex over everything that determines the contents of an application's topics and stores, except code.

    Covered: sub-topologies and their ids; name, kind and parents of every node in order; topics, patterns, internal
    topics and their fixed partition counts; the parameters of operations (windows, stores, flags); connected stores;
    name, kind, size, retention and logging of stores; the schemas of serdes (fields, types, defaults; not the names of
    classes).

    Not covered: the code, place and name of user functions (only that there is one); timestamp extractors and
    partitioners; caching, topic settings, and whether stores keep headers, which may change between runs.
    """
    from hashlib import sha256

    text = json.dumps([_VERSION, without_headers(_parts(subtopologies, global_stores))], sort_keys=True)
    return sha256(text.encode()).hexdigest()


def shape(built: BuiltTopology) -> list[dict[str, Any]]:
    """The input of the fingerprint as JSON, with what is kept to explain later differences: the stores that have
    headers, former names, or rows of declared aggregates."""
    return [{"version": _VERSION, **part} for part in _parts(built.subtopologies, built.global_stores)]


def is_of_earlier_version(shape: Any) -> bool:
    """Whether an earlier version of pystreams made the shape. It has names of serdes' classes instead of schemas."""
    return any(part.get("version") != _VERSION for part in shape)


def without_headers(shape: Any) -> Any:
    """The parts of a shape that the fingerprint covers."""
    return [{what: content for what, content in part.items() if what not in _NOT_COVERED} for part in shape]


def _parts(
    subtopologies: Sequence[SubTopology], global_stores: Sequence[GlobalStore]
) -> list[dict[str, Any]]:
    return [_subtopology(sub) for sub in subtopologies] + [_global_store(one) for one in global_stores]


def first_difference(was: Any, now: Any) -> str:
    """The first difference between two shapes, for people; empty if there is none."""
    if is_of_earlier_version(was) != is_of_earlier_version(now):
        return "an earlier version of pystreams described one of them, without the types of keys and values"
    before, after = _by_place(was), _by_place(now)
    for place in sorted(dict.fromkeys((*before, *after)), key=_is_global):
        then, today = before.get(place), after.get(place)
        if then is None or today is None:
            return f"{place} {'is new' if then is None else 'is gone'}"
        for part in ("nodes", "stores", "internal", "copartitioned"):
            found = _difference_in(part, then.get(part), today.get(part))
            if found:
                return f"{place}: {found}"
    return ""


_GLOBAL = "global store"


def _is_global(place: str) -> bool:
    return place.startswith(_GLOBAL)


def _by_place(shape: Any) -> dict[str, Any]:
    """The sub-topologies by number, then the global stores by name."""
    numbered = [part for part in shape if "internal" in part]
    named = {f"{_GLOBAL} {part['stores'][0][0]}": part for part in shape if "internal" not in part}
    return {**{f"sub-topology {n}": part for n, part in enumerate(numbered)}, **named}


_NAMES = {
    "nodes": "node",
    "stores": "store",
    "internal": "partitions of internal topics",
    "copartitioned": "topics that are partitioned alike",
}


def _difference_in(part: str, was: Any, now: Any) -> str:
    what = _NAMES[part]
    if part not in ("nodes", "stores"):
        return "" if was == now else f"{what} were {json.dumps(was)}, now {json.dumps(now)}"
    # A node is [kind, name, ...], a store [name, ...].
    at = 1 if part == "nodes" else 0
    for then, today in zip_longest(was or (), now or ()):
        if then is None:
            return f"{what} {today[at]} is new"
        if today is None:
            return f"{what} {then[at]} is gone"
        if then[at] != today[at]:
            return f"{what} {then[at]} is replaced by {today[at]}"
        if then != today:
            return f"{what} {today[at]}{_changed(then, today)}"
    return ""


def _changed(was: list[Any], now: list[Any]) -> str:
    """The difference between two versions of a node or store. Schemas of keys and values are among their properties."""
    schemas_was, schemas_now = ([part for part in one if is_schema(part)] for one in (was, now))
    rest_was, rest_now = ([part for part in one if not is_schema(part)] for one in (was, now))
    if rest_was == rest_now and len(schemas_was) == len(schemas_now):
        return f": {difference(schemas_was, schemas_now)}"
    return f" was {json.dumps(rest_was)}, now {json.dumps(rest_now)}"


def same_setting(one: Any, other: Any) -> bool:
    """Whether two serdes or other settings of a source are known to behave alike."""
    if isinstance(one, DeferredSerde) and isinstance(other, DeferredSerde):
        return one.fallback is other.fallback
    if inspect.isfunction(one) or inspect.isfunction(other):
        return one is other
    return bool(_plain(one, _by_class) == _plain(other, _by_class) and type(one) is type(other))


def _by_class(serde: Serde[Any]) -> Any:
    """A serde identified by its class, for comparisons within a process: two classes with equal fields differ."""
    return [type(serde), *(_plain(value, _by_class) for value in _attributes(serde))]


def _global_store(store: GlobalStore) -> dict[str, Any]:
    nodes = [_node(store.source), _node(store.processor)]
    return {"nodes": nodes, "stores": [_store(store.spec)], **_headers([store.spec])}


def _headers(specs: Iterable[StoreSpec]) -> dict[str, list[str]]:
    """The stores that keep headers on disk."""
    names = [spec.name for spec in specs if spec.headers and spec.persistent]
    return {"headers": names} if names else {}


def _store(s: StoreSpec) -> list[Any]:
    return (
        [s.name, s.kind, schema_of(s.key_serde), _of_values(s.value_serde)]
        + [s.persistent, s.logged, s.window_size_ms, s.retention_ms, s.retain_duplicates]
        + ([] if s.source_topic is None else [s.source_topic])
        + ([s.history_ms, s.segment_ms] if s.history_ms is not None else [])
        + ([] if s.max_entries is None else [s.max_entries])
    )


def _subtopology(sub: SubTopology) -> dict[str, Any]:
    return {
        "nodes": [_node(node) for node in sub.nodes],
        "stores": [_store(spec) for spec in sub.stores],
        **_headers(sub.stores),
        **entry_of_declared_rows(sub.stores),
        **entry_of_former_names(sub.stores),
        "internal": {name: topic.partitions for name, topic in sub.repartition_source_topics.items()},
        "copartitioned": sorted(sorted(group) for group in sub.copartitioned_sources),
    }


def _node(node: SourceNode | ProcessorNode | SinkNode) -> list[Any]:
    if isinstance(node, ProcessorNode):
        return ["processor", node.name, list(node.parents), _plain(node.operation), list(node.stores)]
    serdes = [node.key_serde and schema_of(node.key_serde), node.value_serde and _of_values(node.value_serde)]
    if isinstance(node, SourceNode):
        return ["source", node.name, list(node.topics), node.pattern and node.pattern.pattern, *serdes]
    return ["sink", node.name, list(node.parents), node.topic, *serdes]


def _plain(value: Any, of_serde: Callable[[Serde[Any]], Any] | None = None) -> Any:
    """``value`` as JSON that does not depend on the process: names of classes and their data, without code."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, UserFunction):
        return "function"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if _is_generic_alias(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item, of_serde) for item in value]
    if isinstance(value, Serde):
        return _of_values(value) if of_serde is None else of_serde(value)
    if is_dataclass(value):
        data = {f.name: _plain(getattr(value, f.name), of_serde) for f in fields(value)}
        return [_plain(type(value)), data]
    return "code" if callable(value) else str(value)


def _of_values(serde: Serde[Any]) -> Any:
    """The schema of values, without registered ids. Only keys are compared by their bytes, which the id is a part
    of."""

    def without_id(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: without_id(value) for name, value in part.items() if name != "registered"}
        return part

    return without_id(schema_of(serde))


def _attributes(serde: Serde[Any]) -> Iterable[Any]:
    """The arguments of a serde that are data: types, sizes, inner serdes."""
    slots = (name for c in type(serde).__mro__ for name in getattr(c, "__slots__", ()))
    names = sorted({*slots, *getattr(serde, "__dict__", {})})
    for name in names:
        value = getattr(serde, name, None)
        if isinstance(value, (bool, int, str, type, Serde)) or _is_generic_alias(value):
            yield value


def _is_generic_alias(value: Any) -> bool:
    return hasattr(value, "__origin__")
