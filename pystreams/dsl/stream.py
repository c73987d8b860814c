"""Streams of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar, Unpack, overload

from pystreams.dsl import branches, grouped, table
from pystreams.dsl.annotations import Returned
from pystreams.dsl.context import StepPlace
from pystreams.dsl.expressions import step_function
from pystreams.dsl.keywords import suggests_keywords
from pystreams.dsl.materialized import StoreArguments, StoreOptions
from pystreams.dsl.operators.stateless import (
    Filter,
    FlatMap,
    FlatMapValues,
    Foreach,
    Forward,
    Map,
    MapValues,
    Peek,
    Print,
    SelectKey,
)
from pystreams.dsl.operators.table import TableSource
from pystreams.dsl.origins import TopicOrigin
from pystreams.dsl.processing import Processing
from pystreams.dsl.repartition import repartition_node
from pystreams.dsl.serdes import TypeOrSerde, common, given_or, returned_by
from pystreams.errors import TopologyError
from pystreams.functions import Form, UserFunction
from pystreams.processor import Partitioner, RecordContext
from pystreams.serde.base import AnySerde
from pystreams.topology.arguments import checked_partitioner, topic_chooser
from pystreams.topology.graph import ProcessorGraphNode, SinkGraphNode
from pystreams.topology.names import checked
from pystreams.topology.nodes import Operation, SinkNode

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")


@suggests_keywords
class KStream(Processing[K, V]):
    """A stream of independent records. Steps return new streams; nothing runs before the topology is built and started.

    A function argument takes the value, or key and value. ``pystreams.dsl`` describes the keyword arguments. All steps
    raise ``TopologyError`` for a function with another arity and for an invalid name.
    Source: KStream, KStreamImpl.
    """

    def __repr__(self) -> str:
        return f"KStream({self._place!r})"

    # Steps on single records

    @overload
    def filter(self, predicate: Callable[[V], object], *, step: str | None = ...) -> KStream[K, V]: ...
    @overload
    def filter(self, predicate: Callable[[K, V], object], *, step: str | None = ...) -> KStream[K, V]: ...
    def filter(self, predicate: Callable[..., object], *, step: str | None = None) -> KStream[K, V]:
        """Keep the records for which ``predicate`` is true."""
        name, function = self._named("filter", "KSTREAM-FILTER-", step, predicate, "predicate")
        return self._then(name, Filter(function))

    @overload
    def filter_not(self, predicate: Callable[[V], object], *, step: str | None = ...) -> KStream[K, V]: ...
    @overload
    def filter_not(self, predicate: Callable[[K, V], object], *, step: str | None = ...) -> KStream[K, V]: ...
    def filter_not(self, predicate: Callable[..., object], *, step: str | None = None) -> KStream[K, V]:
        """Keep the records for which ``predicate`` is false."""
        name, function = self._named("filter_not", "KSTREAM-FILTER-", step, predicate, "predicate")
        return self._then(name, Filter(function, negate=True))

    @overload
    def map(
        self,
        mapper: Callable[[V], tuple[K2, V2]],
        *,
        key: TypeOrSerde[K2] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K2, V2]: ...
    @overload
    def map(
        self,
        mapper: Callable[[K, V], tuple[K2, V2]],
        *,
        key: TypeOrSerde[K2] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K2, V2]: ...
    def map(
        self, mapper: Callable[..., Any], *, key: Any = None, value: Any = None, step: str | None = None
    ) -> KStream[Any, Any]:
        """Replace each record by the (key, value) that ``mapper`` returns. Use ``map_values`` if the key stays the
        same."""
        name, function = self._named("map", "KSTREAM-MAP-", step, mapper)
        serdes = self._computed(name, function, (key, Returned.KEY), (value, Returned.VALUE))
        return self._rekeyed(name, Map(function), *serdes)

    @overload
    def map_values(
        self,
        mapper: Callable[[V], V2],
        *,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def map_values(
        self,
        mapper: Callable[[K, V], V2],
        *,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    def map_values(
        self, mapper: Callable[..., Any], *, value: Any = None, step: str | None = None
    ) -> KStream[K, Any]:
        """Replace each value by the result of ``mapper``, which is called for None, too.

        ``value=`` is the type of the result; it is not needed if ``mapper`` is that type (``int``).
        """
        name, function = self._named("map_values", "KSTREAM-MAPVALUES-", step, mapper)
        serde = returned_by(value, f"the value that {name} computes", function, self._place.value)
        return self._then(name, MapValues(function), value=serde, changes_value=True)

    @overload
    def flat_map(
        self,
        mapper: Callable[[V], Iterable[tuple[K2, V2]]],
        *,
        key: TypeOrSerde[K2] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K2, V2]: ...
    @overload
    def flat_map(
        self,
        mapper: Callable[[K, V], Iterable[tuple[K2, V2]]],
        *,
        key: TypeOrSerde[K2] | None = ...,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K2, V2]: ...
    def flat_map(
        self, mapper: Callable[..., Any], *, key: Any = None, value: Any = None, step: str | None = None
    ) -> KStream[Any, Any]:
        """Replace each record by the (key, value) pairs that ``mapper`` returns."""
        name, function = self._named("flat_map", "KSTREAM-FLATMAP-", step, mapper)
        serdes = self._computed(name, function, (key, Returned.KEY_OF_EACH), (value, Returned.VALUE_OF_EACH))
        return self._rekeyed(name, FlatMap(function), *serdes)

    @overload
    def flat_map_values(
        self,
        mapper: Callable[[V], Iterable[V2]],
        *,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    @overload
    def flat_map_values(
        self,
        mapper: Callable[[K, V], Iterable[V2]],
        *,
        value: TypeOrSerde[V2] | None = ...,
        step: str | None = ...,
    ) -> KStream[K, V2]: ...
    def flat_map_values(
        self, mapper: Callable[..., Any], *, value: Any = None, step: str | None = None
    ) -> KStream[K, Any]:
        """Replace each record by one record per value that ``mapper`` returns, with the same key."""
        name, function = self._named("flat_map_values", "KSTREAM-FLATMAPVALUES-", step, mapper)
        what = f"the value that {name} computes"
        serde = returned_by(value, what, function, self._place.value, part=Returned.EACH)
        return self._then(name, FlatMapValues(function), value=serde, changes_value=True)

    @overload
    def select_key(
        self, mapper: Callable[[V], K2], *, key: TypeOrSerde[K2] | None = ..., step: str | None = ...
    ) -> KStream[K2, V]: ...
    @overload
    def select_key(
        self, mapper: Callable[[K, V], K2], *, key: TypeOrSerde[K2] | None = ..., step: str | None = ...
    ) -> KStream[K2, V]: ...
    def select_key(
        self, mapper: Callable[..., Any], *, key: Any = None, step: str | None = None
    ) -> KStream[Any, V]:
        """Replace each key by the result of ``mapper``."""
        name, function = self._named("select_key", "KSTREAM-KEY-SELECT-", step, mapper)
        serde = returned_by(key, f"the key that {name} computes", function, self._place.value)
        return self._rekeyed(name, SelectKey(function), serde, self._place.value)

    @overload
    def peek(self, action: Callable[[V], object], *, step: str | None = ...) -> KStream[K, V]: ...
    @overload
    def peek(self, action: Callable[[K, V], object], *, step: str | None = ...) -> KStream[K, V]: ...
    def peek(self, action: Callable[..., object], *, step: str | None = None) -> KStream[K, V]:
        """Call ``action`` for each record, and forward the record unchanged."""
        name, function = self._named("peek", "KSTREAM-PEEK-", step, action, "action")
        return self._then(name, Peek(function))

    @overload
    def foreach(self, action: Callable[[V], object], *, step: str | None = ...) -> None: ...
    @overload
    def foreach(self, action: Callable[[K, V], object], *, step: str | None = ...) -> None: ...
    def foreach(self, action: Callable[..., object], *, step: str | None = None) -> None:
        """Call ``action`` for each record. This ends the stream."""
        name, function = self._named("foreach", "KSTREAM-FOREACH-", step, action, "action")
        self._then(name, Foreach(function))

    def print(self, *, label: str | None = None, path: str | None = None, step: str | None = None) -> None:
        """Write ``[label]: key, value`` to standard output or append it to a file. The default label is this stream's
        name."""
        name = self._place.context.names.step("KSTREAM-PRINTER-", step)
        self._then(name, Print(self._place.name if label is None else label, path))

    # Steps on several streams

    def merge(self, other: KStream[K, V], *, step: str | None = None) -> KStream[K, V]:
        """Merge two streams. The records of one are in no particular order to those of the other."""
        if not isinstance(other, KStream):
            raise TopologyError(
                f"merge takes a stream, not {type(other).__name__}",
                hint="to_stream() makes a table a stream",
            )
        one, two = self._place, other._place
        one.check_same_builder(two.context, two.name)
        name = one.context.names.step("KSTREAM-MERGE-", step)
        node = ProcessorGraphNode(name, Forward(), merges=True)
        one.context.graph.add(node, one.node, two.node)
        key = common(one.key, two.key, f"the keys that {name} merges")
        value = common(one.value, two.value, f"the values that {name} merges")
        needs_repartition = one.needs_repartition or two.needs_repartition
        sources = one.sources | two.sources
        return KStream(StepPlace(one.context, name, node, sources, key, value, needs_repartition))

    def split(self, *, step: str | None = None) -> branches.BranchedKStream[K, V]:
        """Split the stream into branches: see ``BranchedKStream``. ``step`` is also the prefix of the branches'
        names."""
        name = self._place.context.names.step("KSTREAM-BRANCH-", step)
        return branches.BranchedKStream(self._place, name)

    # Topics

    @overload
    def to(
        self,
        topic: str,
        *,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V] | None = ...,
        partitioner: Partitioner[K, V] | None = ...,
        step: str | None = ...,
    ) -> None: ...
    @overload
    def to(
        self,
        topic: Callable[[V], str],
        *,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V] | None = ...,
        partitioner: Partitioner[K, V] | None = ...,
        step: str | None = ...,
    ) -> None: ...
    @overload
    def to(
        self,
        topic: Callable[[K, V], str],
        *,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V] | None = ...,
        partitioner: Partitioner[K, V] | None = ...,
        step: str | None = ...,
    ) -> None: ...
    @overload
    def to(
        self,
        topic: Callable[[K, V, RecordContext], str],
        *,
        key: TypeOrSerde[K] | None = ...,
        value: TypeOrSerde[V] | None = ...,
        partitioner: Partitioner[K, V] | None = ...,
        step: str | None = ...,
    ) -> None: ...
    def to(
        self,
        topic: str | Callable[..., str],
        *,
        key: Any = None,
        value: Any = None,
        partitioner: Any = None,
        step: str | None = None,
    ) -> None:
        """Write to a topic, or to the topic that a function returns for each record. The topics must exist.

        The function takes the value, key and value, or key, value and a ``RecordContext``, the record's origin.
        """
        name = self._place.context.names.step("KSTREAM-SINK-", step)
        chooser = topic_chooser(topic, f"to {name}")
        sink = SinkNode(
            name,
            (),
            checked(topic) if isinstance(topic, str) else None,
            chooser,
            given_or(key, self._place.key),
            given_or(value, self._place.value),
            checked_partitioner(partitioner, name),
        )
        self._place.add(SinkGraphNode(name, sink))

    def repartition(
        self,
        *,
        name: str | None = None,
        key: TypeOrSerde[K] | None = None,
        value: TypeOrSerde[V] | None = None,
        partitioner: Partitioner[K, V] | None = None,
        partitions: int | None = None,
    ) -> KStream[K, V]:
        """Write the records to the topic ``<application>-<name>-repartition``, and continue with reading it.

        ``partitions`` None: as many as the topics have that feed it. Records without a key are dropped, unless a left
        join follows.
        """
        if partitions is not None and (type(partitions) is not int or partitions < 1):
            raise TopologyError(
                f"partitions={partitions!r}: a topic needs at least one partition", hint="give a whole number"
            )
        place = self._place
        prefix = place.context.names.step("KSTREAM-REPARTITION-") if name is None else checked(name)
        node = repartition_node(
            place.context,
            prefix,
            given_or(key, place.key),
            given_or(value, place.value),
            named_by_user=name is not None,
            partitioner=checked_partitioner(partitioner, prefix),
            partitions=partitions,
            optimizable=False,
        )
        return KStream(self._behind(node))

    # Tables and groupings

    def to_table(self, *, step: str | None = None, **store: Unpack[StoreArguments]) -> table.KTable[K, V]:
        """Read the stream as a table: each record replaces the value of its key, None deletes it."""
        options = StoreOptions.of("to_table", store)
        place, prefix = self._place, "KSTREAM-TOTABLE-"
        name = place.context.names.step(prefix, step)
        store_name = options.named(place.context, prefix)
        spec = options.key_value(store_name.name, place.key, place.value)
        if place.needs_repartition:
            middle = repartition_node(
                place.context, name, spec.key_serde, spec.value_serde, named_by_user=step is not None
            )
            place = self._behind(middle)
        operation = TableSource(store_name.name if store_name.by_user else None)
        node = ProcessorGraphNode(name, operation, spec)
        place.add(node)
        behind = StepPlace(place.context, name, node, place.sources, spec.key_serde, spec.value_serde)
        return table.KTable(behind, TopicOrigin(operation, spec), spec, queryable=store_name.by_user)

    def group_by_key(
        self,
        *,
        key: TypeOrSerde[K] | None = None,
        value: TypeOrSerde[V] | None = None,
        repartition: str | None = None,
    ) -> grouped.KGroupedStream[K, V]:
        """Group by key, for aggregation. ``repartition`` names the topic that is needed if the key was changed."""
        place = self._place
        place = replace(place, key=given_or(key, place.key), value=given_or(value, place.value))
        return grouped.KGroupedStream(place, repartition)

    @overload
    def group_by(
        self,
        mapper: Callable[[V], K2],
        *,
        key: TypeOrSerde[K2] | None = ...,
        value: TypeOrSerde[V] | None = ...,
        repartition: str | None = ...,
    ) -> grouped.KGroupedStream[K2, V]: ...
    @overload
    def group_by(
        self,
        mapper: Callable[[K, V], K2],
        *,
        key: TypeOrSerde[K2] | None = ...,
        value: TypeOrSerde[V] | None = ...,
        repartition: str | None = ...,
    ) -> grouped.KGroupedStream[K2, V]: ...
    def group_by(
        self,
        mapper: Callable[..., Any],
        *,
        key: Any = None,
        value: Any = None,
        repartition: str | None = None,
    ) -> grouped.KGroupedStream[Any, V]:
        """Group by the key that ``mapper`` returns. ``repartition`` names the repartition topic and this step."""
        name, function = self._named("group_by", "KSTREAM-KEY-SELECT-", repartition, mapper)
        serde = returned_by(key, f"the key that {name} computes", function, self._place.value)
        rekeyed: KStream[Any, V] = self._rekeyed(name, SelectKey(function), serde, self._place.value)
        return rekeyed.group_by_key(value=value, repartition=repartition)

    # Helpers

    def _named(
        self, method: str, prefix: str, step: str | None, function: Callable[..., Any], form: Form = "value"
    ) -> tuple[str, UserFunction]:
        name = self._place.context.names.step(prefix, step)
        return name, step_function(function, form, f"{method} {name}", self._place.value)

    def _computed(
        self, name: str, function: UserFunction, key: tuple[Any, Returned], value: tuple[Any, Returned]
    ) -> tuple[AnySerde, AnySerde]:
        """The serdes of key and value, from the given types, or from the parts of the result of ``function``."""
        text = self._place.value
        new_key = returned_by(key[0], f"the key that {name} computes", function, text, part=key[1])
        return new_key, returned_by(
            value[0], f"the value that {name} computes", function, text, part=value[1]
        )

    def _then(
        self, name: str, operation: Operation, *, value: AnySerde | None = None, changes_value: bool = False
    ) -> KStream[K, Any]:
        """Add a step that does not change the key."""
        place = self._place
        node = ProcessorGraphNode(name, operation, changes_value=changes_value)
        place.add(node)
        return KStream(replace(place, name=name, node=node, value=value or place.value))

    def _rekeyed(
        self, name: str, operation: Map | FlatMap | SelectKey, key: AnySerde, value: AnySerde
    ) -> KStream[Any, Any]:
        """Add a step that changes the key."""
        place = self._place
        node = ProcessorGraphNode(name, operation, changes_key=True)
        place.add(node)
        return KStream(StepPlace(place.context, name, node, place.sources, key, value, True))
