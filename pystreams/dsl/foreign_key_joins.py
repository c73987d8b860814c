"""Builds a foreign-key join of two tables: it adds two topics between them, and thereby sub-topologies.

Source: KTableImpl.doJoinOnForeignKey.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final

from pystreams.dsl import table
from pystreams.dsl.context import StepPlace
from pystreams.dsl.expressions import step_function
from pystreams.dsl.materialized import StoreName, StoreOptions
from pystreams.dsl.operators.foreign_key_join import (
    ForeignTableJoin,
    JoinSerdes,
    ResponseJoin,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
    to_primary_partition,
)
from pystreams.dsl.operators.table import TableSource
from pystreams.dsl.origins import TopicOrigin
from pystreams.dsl.serdes import given_or, returned_by
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction
from pystreams.serde import BYTES
from pystreams.serde.base import AnySerde
from pystreams.serde.subscriptions import ResponseSerde, SubscriptionSerde
from pystreams.state.spec import StoreSpec
from pystreams.topology.arguments import checked_partitioner
from pystreams.topology.deferred import wrapped
from pystreams.topology.graph import ProcessorGraphNode, RepartitionGraphNode
from pystreams.topology.nodes import SinkNode, SourceNode

_PREFIX: Final = "KTABLE-FK-JOIN-"
_OUTPUT: Final = f"{_PREFIX}OUTPUT-"
_PROCESSOR: Final = f"{_PREFIX}SUBSCRIPTION-PROCESSOR-"
_REGISTRATION: Final = f"{_PREFIX}SUBSCRIPTION-REGISTRATION-"
_RESPONSE: Final = f"{_PREFIX}SUBSCRIPTION-RESPONSE-"


@dataclass(frozen=True, slots=True)
class ForeignKeyOptions:
    """The arguments of a foreign-key join. The partitioners are those of this and of the other table's topic, if it is
    not partitioned by the hash of the key. Source: org.apache.kafka.streams.kstream.TableJoined."""

    foreign_key: Callable[..., Any] | None
    left: bool
    step: str | None
    partitioner: Any = None
    other_partitioner: Any = None

    @property
    def method(self) -> str:
        return "left_join" if self.left else "join"


def joined_on_foreign_key(
    this: table.KTable[Any, Any],
    other: object,
    joiner: Callable[..., Any],
    asked: ForeignKeyOptions,
    store: StoreOptions,
) -> table.KTable[Any, Any]:
    """``this`` joined with the rows of ``other`` to which its rows refer."""
    if asked.foreign_key is None:
        raise TopologyError(
            f"partitioner= and other_partitioner= of {asked.method} are for joins by a foreign key",
            hint="give foreign_key=, or leave them out: tables that are joined by key are co-partitioned",
        )
    if not isinstance(other, table.KTable):
        raise TopologyError(
            f"{asked.method} by a foreign key takes a table, not {type(other).__name__}",
            hint="read a topic as a table with table(...), or make a stream a table with to_table()",
        )
    this._place.check_same_builder(other._place.context, other._place.name)
    return _Join(this, other, joiner, asked, store).build()


class _Join:
    """A join under construction. Its names are generated in Java's order."""

    def __init__(
        self,
        this: table.KTable[Any, Any],
        other: table.KTable[Any, Any],
        joiner: Callable[..., Any],
        asked: ForeignKeyOptions,
        store: StoreOptions,
    ) -> None:
        self._this = this
        self._other = other
        self._joiner = joiner
        self._asked = asked
        self._store = store
        self._context = this._place.context

    def build(self) -> table.KTable[Any, Any]:
        this, other = self._this, self._other
        other._origin.send_old_values(force=True)
        this._origin.send_old_values(force=True)
        topic = self._name("-subscription-registration", _REGISTRATION) + "-topic"
        serdes = JoinSerdes(topic, this._place.key, other._place.key, this._place.value)
        subscriptions = self._subscriptions(topic, serdes)
        answers = self._answers(serdes, subscriptions)
        return self._result(serdes, answers)

    def _name(self, suffix: str, prefix: str) -> str:
        step = self._asked.step
        return self._context.names.step(prefix, None if step is None else step + suffix)

    def _subscriptions(self, topic: str, serdes: JoinSerdes) -> StepPlace:
        """The steps that read the topic of subscriptions, in the sub-topology of the other table."""
        name = self._name("-subscription-registration-processor", _REGISTRATION)
        assert self._asked.foreign_key is not None
        values = self._this._place.value
        extractor = step_function(self._asked.foreign_key, "value", f"foreign_key of {name}", values)
        versioned = self._this._origin.versioned
        send = ProcessorGraphNode(name, SubscriptionSend(serdes, extractor, self._asked.left, versioned))
        self._this._place.add(send)
        behind = StepPlace(self._context, name, send, frozenset(), serdes.foreign_key, SubscriptionSerde())
        sink = self._name("-subscription-registration-sink", "KTABLE-SINK-")
        source = self._name("-subscription-registration-source", "KTABLE-SOURCE-")
        partitioner = _by_key_alone(self._asked.other_partitioner, f"{self._asked.method} {name}")
        return self._through(topic, sink, source, behind, self._other._place, partitioner)

    def _answers(self, serdes: JoinSerdes, subscriptions: StepPlace) -> StepPlace:
        """The steps that read the topic of answers, in the sub-topology of this table."""
        other = self._other
        spec = StoreSpec(
            self._name("-subscription-store", f"{_PREFIX}SUBSCRIPTION-STATE-STORE-"),
            "timestamped_key_value",
            BYTES,
            SubscriptionSerde(),
            **self._store.kept,
            logs_headers=True,
            # A store in memory always keeps headers, as in Java.
            headers=self._store.persistent is False,
            of_language=True,
        )
        receive_name = self._name("-subscription-receive", _PROCESSOR)
        receive = ProcessorGraphNode(receive_name, SubscriptionReceive(serdes, spec.name), spec)
        subscriptions.add(receive)
        getter = other._origin.value_getter()
        join = ProcessorGraphNode(
            self._name("-subscription-join-foreign", _PROCESSOR),
            SubscriptionJoin(serdes, getter),
            connected=getter.store_names(),
        )
        self._context.graph.add(join, receive)
        change_name = self._name("-foreign-join-subscription", _PROCESSOR)
        foreign = ForeignTableJoin(serdes, spec.name, other._origin.versioned)
        change = ProcessorGraphNode(change_name, foreign, connected=(spec,))
        other._place.add(change)
        topic = self._name("-subscription-response", _RESPONSE) + "-topic"
        value = wrapped(other._place.value, ResponseSerde)
        behind = StepPlace(self._context, join.name, join, frozenset(), serdes.primary_key, value)
        sink = self._name("-subscription-response-sink", "KTABLE-SINK-")
        source = self._name("-subscription-response-source", "KTABLE-SOURCE-")
        partitioner = _by_key_alone(self._asked.partitioner, f"{self._asked.method} {change_name}")
        answers = self._through(
            topic, sink, source, behind, self._this._place, partitioner or to_primary_partition
        )
        # The order matters: the last of its parents decides when the topic is written.
        self._context.graph.add(answers.node, change)
        return answers

    def _through(
        self, topic: str, sink: str, source: str, behind: StepPlace, beside: StepPlace, partitioner: Any
    ) -> StepPlace:
        """Write the results of ``behind`` to a topic that is co-partitioned with ``beside``, and read it again."""
        key, value = behind.key, behind.value
        # As in Java, it has no extractor of its own: the application's default extractor determines the time.
        node = RepartitionGraphNode(
            source,
            SinkNode(sink, (), topic, None, key, value, partitioner),
            SourceNode(source, (topic,), None, key, value),
        )
        behind.add(node)
        sources = beside.sources | {source}
        self._context.graph.copartition(sources)
        return StepPlace(self._context, source, node, sources, key, value)

    def _result(self, serdes: JoinSerdes, answers: StepPlace) -> table.KTable[Any, Any]:
        resolver = self._name("-subscription-response-resolver", f"{_RESPONSE}RESOLVER-PROCESSOR-")
        name = self._name("-result", _OUTPUT)
        store_name = self._store.named(self._context, _OUTPUT)
        joiner = UserFunction.of(self._joiner, "join", f"{self._asked.method} {name}")
        getter = self._this._origin.value_getter()
        resolve = ProcessorGraphNode(
            resolver,
            ResponseJoin(serdes, getter, joiner, self._asked.left),
            connected=getter.store_names(),
        )
        answers.add(resolve)
        key, value = given_or(self._store.key, serdes.primary_key), self._value(name, joiner)
        spec = self._store.key_value(store_name.name, key, value)
        return self._as_table(name, resolve, answers, spec, store_name)

    def _as_table(
        self,
        name: str,
        resolve: ProcessorGraphNode,
        answers: StepPlace,
        spec: StoreSpec,
        store_name: StoreName,
    ) -> table.KTable[Any, Any]:
        operation = TableSource(store_name.name if store_name.by_user else None)
        node = ProcessorGraphNode(name, operation, spec)
        self._context.graph.add(node, resolve)
        place = StepPlace(self._context, name, node, answers.sources, spec.key_serde, spec.value_serde)
        origin = TopicOrigin(operation, spec)
        return table.KTable(place, origin, spec, queryable=store_name.by_user)

    def _value(self, name: str, joiner: UserFunction) -> AnySerde:
        inputs = (self._this._place.value, self._other._place.value)
        return returned_by(self._store.value, f"the value that {name} computes", joiner, *inputs)


def _by_key_alone(partitioner: Any, step: str) -> Any:
    """A user's partitioner of a table's keys, called without a value: the topic's values are not the table's."""
    if checked_partitioner(partitioner, step) is None:
        return None

    @wraps(partitioner)
    def partition(topic: str, key: Any, _value: Any, partitions: int) -> Any:
        chosen: Any = partitioner(topic, key, None, partitions)
        if isinstance(chosen, Collection):
            if len(chosen) != 1:
                raise ValueError(f"the partitioner of a foreign-key join chose {chosen!r}, not one partition")
            return next(iter(chosen))
        return chosen

    return partition
