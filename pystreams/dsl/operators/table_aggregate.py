"""Aggregations of a grouped table: the old value is subtracted, then the new one added.

They read a repartition topic, whose values are changes (new, old).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.changes import change_forwarder, forward_flushed
from pystreams.dsl.operators.forgotten import none_warning
from pystreams.dsl.operators.in_place import copier
from pystreams.functions import UserFunction
from pystreams.record import Headers

#: (key, aggregate or None, new or None, old or None) -> (aggregate or None, whether the store's timestamp counts)
Combine = Callable[[Any, Any, Any, Any], "tuple[Any, bool]"]


def _with_key(function: UserFunction) -> Callable[[Any, Any, Any], Any]:
    call = function.call
    return call if function.takes_key else lambda _key, aggregate, value: call(aggregate, value)


@dataclass(eq=False, slots=True)
class TableAggregate(ObjectOperation):
    """``count`` and ``aggregate``. Source: KTableAggregate."""

    emits_changes: ClassVar[bool] = True
    stores_under_key: ClassVar[bool] = True
    store: str
    initializer: UserFunction
    adder: UserFunction
    subtractor: UserFunction
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        initialize = self.initializer.call
        add, subtract = _with_key(self.adder), _with_key(self.subtractor)

        def combine(key: Any, aggregate: Any, new: Any, old: Any) -> tuple[Any, bool]:
            stored = aggregate is not None
            subtracts = stored and old is not None
            if subtracts:
                aggregate = subtract(key, aggregate, old)
            if new is None:
                return aggregate, subtracts
            return add(key, initialize() if aggregate is None else aggregate, new), stored

        return _open(self, environment, combine)


@dataclass(eq=False, slots=True)
class TableReduce(ObjectOperation):
    """``reduce``. Source: KTableReduce."""

    emits_changes: ClassVar[bool] = True
    stores_under_key: ClassVar[bool] = True
    store: str
    adder: UserFunction
    subtractor: UserFunction
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        add, subtract = _with_key(self.adder), _with_key(self.subtractor)

        def combine(key: Any, aggregate: Any, new: Any, old: Any) -> tuple[Any, bool]:
            subtracts = aggregate is not None and old is not None
            if subtracts:
                aggregate = subtract(key, aggregate, old)
            if new is None:
                return aggregate, subtracts
            if aggregate is None:
                return new, subtracts
            return add(key, aggregate, new), True

        return _open(self, environment, combine)


def _on_a_copy(combine: Combine, copy: Callable[[Any], Any]) -> Combine:
    return lambda key, stored, new, old: combine(key, copy(stored), new, old)


def _open(
    operation: TableAggregate | TableReduce, environment: OperatorEnvironment, combine: Combine
) -> Operator:
    store = environment.store(operation.store)
    encode_key, read, write, cached = store.encode_key, store.read, store.write, store.cached
    forward_change, send_old = change_forwarder(environment, store), operation.send_old_values
    forward_flushed(environment, store, send_old)
    gave_none = none_warning(environment, operation.adder)
    copy = copier(environment, store.spec, needed=send_old and not cached)
    if copy is not None:
        combine = _on_a_copy(combine, copy)

    def process(key: Any, change: tuple[Any, Any], timestamp: int, headers: Headers) -> None:
        if key is None:
            raise ValueError("the key of a table's group is null")
        new, old = change
        key_bytes = encode_key(key)
        entry = read(key_bytes)
        stored, stored_timestamp = (None, timestamp) if entry is None else entry
        aggregate, counts = combine(key, stored, new, old)
        if aggregate is None and new is not None:
            gave_none()
        if counts and stored_timestamp > timestamp:
            timestamp = stored_timestamp
        write(key_bytes, aggregate, timestamp)
        if not cached:
            forward_change(key, aggregate, stored if send_old else None, timestamp, headers)

    return Operator(process)
