"""Aggregations that begin before their repartition topic, in history: each task writes one partial aggregate for each
key (and window) to it, instead of each record, and the step behind the topic merges them.

A partial stands where the last of its records would have stood, and has its headers. So the step behind the topic sees
the same last record of each key as if all had come. Keys and values go through the serdes of the topic, as on their way
through it. A failure gives the partials up (``FoldingError``), because the handlers need the record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

from pystreams.dsl.aggregates.rows import rows_of
from pystreams.dsl.operators.aggregate import Aggregate, Reduce
from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.final_results import Room, failed_while_holding, fold_keys
from pystreams.dsl.operators.folding import one_more
from pystreams.dsl.operators.in_place import Copy, copier
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.errors import FoldingError
from pystreams.functions import UserFunction
from pystreams.record import NO_HEADERS, Headers
from pystreams.state.spec import StoreSpec
from pystreams.topology.names import changelog_topic
from pystreams.topology.nodes import SinkNode

#: The operations that can begin before a repartition topic.
Combinable: TypeAlias = Aggregate | Reduce | WindowAggregate

#: Why values of a type that is known only with them cannot be combined.
ORDER_MATTERS = "the order of the records matters for these values"

#: So many records that are written as they are wait for the partials before them, at most.
_ROWS_MAX = 10_000


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
        """Write a row. Those of one call of ``Partials.turn`` come in no order, and before those of later calls."""
        ...


#: The queue of a key.
QueueOf: TypeAlias = Callable[[bytes], Queue]


class Functions(NamedTuple):
    """The functions that make partials for one store."""

    #: The first aggregate from a value, and the next one from an aggregate and a value.
    begin: Callable[[Any], Any]
    update: Callable[[Any, Any], Any]
    #: Whether an aggregate may be merged with others in any order; None: all may.
    merges_freely: Callable[[Any], bool] | None
    encode: Callable[[Any], bytes]
    encode_key: Callable[[Any], bytes]
    encode_value: Callable[[Any], bytes]
    #: A value as it comes out of the topic; of a count, any value.
    passed: Callable[[Any], Any]


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
    write = sink.value_serde.serializer(sink.topic)
    read = sink.value_serde.deserializer(sink.topic)
    counts = not isinstance(operation, Reduce) and operation.aggregator.call is one_more
    return Functions(
        begin,
        update,
        merges_freely,
        spec.value_serde.serializer(changelog_topic(environment.application_id, spec.name)),
        sink.key_serde.serializer(sink.topic),
        write,
        write if counts else lambda value: read(write(value)),
    )


def _aggregating(operation: Combinable, copy: Copy) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """The functions that begin and update an aggregate, which is never also somebody else's object."""
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


class Partial:
    """A partial aggregate of one key. ``timestamp`` is the greatest of its records; the other fields are those of the
    last one's ``Row``."""

    __slots__ = ("aggregate", "headers", "key", "queue", "sequence", "time", "timestamp")

    def __init__(self, key: bytes, queue: Queue) -> None:
        self.key = key
        self.queue = queue
        #: None: there was no record yet.
        self.aggregate: Any = None
        self.timestamp = self.sequence = self.time = -1
        self.headers = NO_HEADERS


#: The bytes of a partial, given what it is held under.
Encode: TypeAlias = Callable[[Any, Partial], bytes]


class Partials:
    """The partials that a task holds, up to about ``bytes_max`` bytes: the ones that were used last."""

    def __init__(
        self,
        environment: OperatorEnvironment,
        spec: StoreSpec,
        queue_of: QueueOf,
        encode: Encode,
        merges_freely: Callable[[Any], bool] | None,
        bytes_max: int,
    ) -> None:
        #: A partial that is used is in the young generation. When this is full, those that are only in the old one are
        #: written.
        self.young: dict[Any, Partial] = {}
        self._old: dict[Any, Partial] = {}
        #: Records that are written as they are, in their order.
        self._rows: list[tuple[Queue, Row]] = []
        self._old_rows: list[tuple[Queue, Row]] = []
        self._environment = environment
        self._queue_of = queue_of
        self._encode = encode
        self._merges_freely = merges_freely
        self._room = Room(environment, spec, bytes_max // 2)

    def found(self, address: Any, key: bytes) -> Partial:
        """The partial held under ``address``, which is not in the young generation, and joins it."""
        young = self.young
        if len(young) >= self._room.entries and self._room.full(
            (partial.aggregate for partial in young.values()), len(young)
        ):
            self.turn()
        partial = self._old.pop(address, None) or Partial(key, self._queue_of(key))
        young[address] = partial
        return partial

    def add(self, queue: Queue, row: Row) -> None:
        """A record that is written as it is."""
        self._rows.append((queue, row))
        if len(self._rows) == _ROWS_MAX:
            self.turn()

    def turn(self) -> None:
        """Write the old generation; the young one is the old one then."""
        for address, partial in self._old.items():
            if partial.aggregate is not None:
                self._write(address, partial)
        for queue, row in self._old_rows:
            queue.add(row)
        self._old = self.young.copy()
        self.young.clear()
        self._old_rows, self._rows = self._rows, []

    def flush(self) -> None:
        """Write everything."""
        self.turn()
        self.turn()

    def _write(self, address: Any, partial: Partial) -> None:
        if self._merges_freely is not None and not self._merges_freely(partial.aggregate):
            raise cannot_combine(self._environment, ORDER_MATTERS)
        try:
            value = self._encode(address, partial)
        except Exception as error:
            raise failed_while_holding(self._environment, error) from error
        partial.queue.add(
            Row(partial.sequence, partial.time, partial.key, value, partial.timestamp, partial.headers)
        )


def combine_keys(
    environment: OperatorEnvironment, spec: StoreSpec, functions: Functions, queue_of: QueueOf, bytes_max: int
) -> Folded:
    """Partials by key. Records with null values go on as they are: the step behind the topic drops them."""
    begin, update, merges_freely, encode, encode_key, _, passed = functions
    partials = Partials(
        environment, spec, queue_of, lambda _, partial: encode(partial.aggregate), merges_freely, bytes_max
    )
    young, found, add = partials.young, partials.found, partials.add

    def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        try:
            address = key if key.__class__ is str else encode_key(key)
            partial = young.get(address) or found(address, encode_key(key))
            queue = partial.queue
            sequence = queue.sequence
            queue.sequence = sequence + 1
            if timestamp > queue.time:
                queue.time = timestamp
            if value is None:
                add(queue, Row(sequence, queue.time, partial.key, None, timestamp, headers))
                return
            before = partial.aggregate
            partial.aggregate = aggregate = (
                begin(passed(value)) if before is None else update(before, passed(value))
            )
        except FoldingError:
            raise
        except Exception as error:
            raise failed_while_holding(environment, error) from error
        if aggregate is None:
            raise cannot_combine(environment, "its function gave None")
        if timestamp > partial.timestamp:
            partial.timestamp = timestamp
        partial.sequence, partial.time, partial.headers = sequence, queue.time, headers

    return Folded(process, partials.flush)


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
