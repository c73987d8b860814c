"""Aggregations of a grouped stream without windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import Folded, FoldingOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.changes import change_forwarder, forward_flushed
from pystreams.dsl.operators.final_results import NULL_KEY_OR_VALUE, OLD_VALUES, beginning, fold_keys
from pystreams.dsl.operators.forgotten import none_warning
from pystreams.dsl.operators.in_columns import folded_in_columns
from pystreams.dsl.operators.in_place import copier, on_a_copy
from pystreams.dsl.operators.record_time import with_record_time
from pystreams.functions import UserFunction
from pystreams.record import Headers


class _ByKey(FoldingOperation):
    """The common part of the aggregations without windows."""

    send_old_values: bool

    def folds(self) -> str:
        return OLD_VALUES if self.send_old_values else ""

    def forward_final(self, environment: OperatorEnvironment) -> None:
        """Have what its store is given forwarded."""
        forward_flushed(environment, environment.store(self.store), send_old_values=False)


@dataclass(eq=False, slots=True)
class Aggregate(_ByKey):
    """``count`` and ``aggregate``. Source: KStreamAggregate."""

    emits_changes: ClassVar[bool] = True
    stores_under_key: ClassVar[bool] = True
    store: str
    initializer: UserFunction
    aggregator: UserFunction
    #: Makes one aggregate of two, in any order, if the program says how.
    merger: UserFunction | None = None
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        store = environment.store(self.store)
        initialize = self.initializer.call
        copy = copier(environment, store.spec, needed=self.send_old_values and not store.cached)
        aggregator = on_a_copy(with_record_time(self.aggregator, environment), copy)
        aggregate, takes_key = aggregator.call, aggregator.takes_key
        encode_key, read, write, cached = store.encode_key, store.read, store.write, store.cached
        drop = environment.drop
        forward_change, send_old = change_forwarder(environment, store), self.send_old_values
        forward_flushed(environment, store, send_old)
        gave_none = none_warning(environment, self.aggregator)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_KEY_OR_VALUE)
                return
            key_bytes = encode_key(key)
            entry = read(key_bytes)
            if entry is None:
                old = initialize()
            else:
                old, old_timestamp = entry
                if old_timestamp > timestamp:
                    timestamp = old_timestamp
            new = aggregate(key, old, value) if takes_key else aggregate(old, value)
            if new is None and entry is None:
                gave_none()
            write(key_bytes, new, timestamp)
            if not cached:
                # As in Java, the first old value is the initializer's; with a cache it is None.
                forward_change(key, new, old if send_old else None, timestamp, headers)

        return Operator(process)

    def fold(self, environment: OperatorEnvironment, bytes_max: int) -> Folded:
        store = environment.store(self.store)
        self.forward_final(environment)
        aggregator = with_record_time(self.aggregator, environment)
        begin = beginning(environment, self.initializer, aggregator)
        folded = folded_in_columns(environment, store, begin, self.aggregator, bytes_max)
        return folded or fold_keys(environment, store, begin, aggregator, bytes_max)


@dataclass(eq=False, slots=True)
class Reduce(_ByKey):
    """``reduce``: the first value is the first aggregate. Source: KStreamReduce."""

    emits_changes: ClassVar[bool] = True
    stores_under_key: ClassVar[bool] = True
    store: str
    reducer: UserFunction
    #: As ``Aggregate.merger``.
    merger: UserFunction | None = None
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        store = environment.store(self.store)
        copy = copier(environment, store.spec, needed=self.send_old_values and not store.cached)
        reducer = on_a_copy(self.reducer, copy)
        reduce, takes_key = reducer.call, reducer.takes_key
        encode_key, read, write, cached = store.encode_key, store.read, store.write, store.cached
        drop = environment.drop
        forward_change, send_old = change_forwarder(environment, store), self.send_old_values
        forward_flushed(environment, store, send_old)
        gave_none = none_warning(environment, self.reducer)

        def process(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_KEY_OR_VALUE)
                return
            key_bytes = encode_key(key)
            entry = read(key_bytes)
            if entry is None:
                old, new = None, value
            else:
                old, old_timestamp = entry
                new = reduce(key, old, value) if takes_key else reduce(old, value)
                if new is None:
                    gave_none()
                if old_timestamp > timestamp:
                    timestamp = old_timestamp
            write(key_bytes, new, timestamp)
            if not cached:
                forward_change(key, new, old if send_old else None, timestamp, headers)

        return Operator(process)

    def fold(self, environment: OperatorEnvironment, bytes_max: int) -> Folded:
        self.forward_final(environment)
        store, reducer = environment.store(self.store), self.reducer
        folded = folded_in_columns(environment, store, _first_value, reducer, bytes_max)
        return folded or fold_keys(environment, store, _first_value, reducer, bytes_max)


def _first_value(_: Any, value: Any) -> Any:
    return value
