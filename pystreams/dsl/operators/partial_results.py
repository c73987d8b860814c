"""Aggregations that begin before their repartition topic, in history: each task writes one partial aggregate for each
key (and window) to it, instead of each record, and the step behind the topic merges them.

A partial stands where the last of its records would have stood, and has its headers. So the step behind the topic sees
the same last record of each key as if all had come. Keys and values go through the serdes of the topic, as on their way
through it. A failure gives the partials up (``FoldingError``), because the handlers need the record.

``partial_columns`` makes the partials, ``partial_windows`` makes and merges those of windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from pystreams.dsl.aggregates.aggregate import Row as AggregateRow
from pystreams.dsl.aggregates.rows import rows_of
from pystreams.dsl.operators.aggregate import Aggregate, Reduce
from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.final_results import fold_keys
from pystreams.dsl.operators.folding import one_more
from pystreams.dsl.operators.in_columns import columns_for
from pystreams.dsl.operators.in_place import Copy, copier
from pystreams.dsl.operators.state_columns import StateColumn
from pystreams.dsl.operators.through_topic import ThroughTopic
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.errors import FoldingError
from pystreams.functions import UserFunction
from pystreams.record import Headers
from pystreams.state.spec import StoreSpec
from pystreams.topology.names import changelog_topic
from pystreams.topology.nodes import SinkNode

#: The operations that can begin before a repartition topic.
Combinable: TypeAlias = Aggregate | Reduce | WindowAggregate

#: Why values of a type that is known only with them cannot be combined.
ORDER_MATTERS = "the order of the records matters for these values"


class Row(NamedTuple):
    """A row that a queue gets in place of a record: the record's number, the greatest timestamp so far, and its
    content."""

    sequence: int
    time: int
    key: bytes
    value: bytes | None
    timestamp: int
    headers: Headers


class Queue(Protocol):
    """The records of a task for one partition of the topic."""

    #: The number of the next record, and the greatest timestamp so far.
    sequence: int
    time: int

    def add(self, row: Row) -> None:
        """Write a row. Those of one call of ``Partials.write`` come in no order, and before those of later calls."""
        ...


#: The queue of a key.
QueueOf: TypeAlias = Callable[[bytes], Queue]


class Functions(NamedTuple):
    """The functions that make partials for one store."""

    #: The columns that hold the partials, and the row that makes aggregates of their states.
    row: AggregateRow
    columns: Sequence[StateColumn]
    #: Whether an aggregate may be merged with others in any order; None: all may.
    merges_freely: Callable[[Any], bool] | None
    encode: Callable[[Any], bytes]
    encode_key: Callable[[Any], bytes]
    #: Whether keys are immutable: then they need not be encoded at once.
    keeps_keys: bool
    values: ThroughTopic


def why_each_record(operation: Combinable) -> str:
    """Why an operation needs each record behind the topic; empty: partials are enough."""
    function = operation.reducer if isinstance(operation, Reduce) else operation.aggregator
    if operation.merger is None:
        return "it does not say how two aggregates are merged (merge=)"
    if function.takes_key or operation.merger.takes_key:
        return "its functions take the key"
    rows = rows_of(operation.merger)
    if function.takes_time or (rows is not None and rows.order_free is False):
        return "the order of the records matters"
    return ""


def functions_of(
    operation: Combinable, environment: OperatorEnvironment, spec: StoreSpec, sink: SinkNode
) -> Functions:
    """The functions of ``operation`` for the records of ``sink``; ``spec`` is its store, behind the topic."""
    assert sink.topic is not None
    assert sink.key_serde is not None
    assert sink.value_serde is not None
    begin, update = _aggregating(operation, copier(environment, spec, needed=True))
    rows = None if operation.merger is None else rows_of(operation.merger)
    merges_freely = None if rows is None or rows.order_free else rows.merges_freely
    if merges_freely is not None:
        begin = _checked(environment, begin, merges_freely)
    function = operation.reducer if isinstance(operation, Reduce) else operation.aggregator
    row, columns = columns_for(function, lambda _, value: begin(value), update)
    return Functions(
        row,
        columns,
        merges_freely,
        spec.value_serde.serializer(changelog_topic(environment.application_id, spec.name)),
        sink.key_serde.serializer(sink.topic),
        sink.key_serde.immutable,
        # A count does not look at its values.
        ThroughTopic(sink.value_serde, sink.topic, reads=function.call is not one_more),
    )


def _aggregating(operation: Combinable, copy: Copy) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """The functions that begin and update an aggregate, whose object is never shared with other code."""
    begin: Callable[[Any], Any]
    if isinstance(operation, Reduce):
        begin, update = (lambda value: value), operation.reducer.call
    else:
        initialize, update = operation.initializer.call, operation.aggregator.call
        begin = lambda value: update(initialize(), value)  # noqa: E731
    if copy is None:
        return begin, update
    copied = copy

    def updated(aggregate: Any, value: Any) -> Any:
        new = update(aggregate, value)
        return copied(new) if new is value else new

    return lambda value: copied(begin(value)), updated


def _checked(
    environment: OperatorEnvironment, begin: Callable[[Any], Any], merges_freely: Callable[[Any], bool]
) -> Callable[[Any], Any]:
    """``begin``, which notices with the first record, and not at the end, that no partials are possible."""

    def begun(value: Any) -> Any:
        aggregate = begin(value)
        if not merges_freely(aggregate):
            raise cannot_combine(environment, ORDER_MATTERS)
        return aggregate

    return begun


def merge_keys(environment: OperatorEnvironment, store: Any, merger: UserFunction, bytes_max: int) -> Folded:
    """The aggregation behind the topic: the values are the bytes of partials."""
    decode = store.spec.value_serde.deserializer(changelog_topic(environment.application_id, store.name))
    merge = merger.call
    function = UserFunction(lambda one, data: merge(one, decode(data)), False, merger.location)
    return fold_keys(environment, store, lambda _, data: decode(data), function, bytes_max)


def cannot_combine(environment: OperatorEnvironment, why: str) -> FoldingError:
    """The aggregate can only be computed from the records."""
    return FoldingError(
        f"step {environment.node_name} cannot combine its records before their repartition topic",
        why=why,
        hint="the work is done again with each record",
    )
