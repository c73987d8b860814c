"""Tables whose values come from a user's transformer: a class with a life cycle and stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.table import materialized_operator
from pystreams.dsl.operators.value_getter import Get, GetAsOf, ValueGetter
from pystreams.functions import UserFunction
from pystreams.record import NO_HEADERS, Headers


@dataclass(eq=False, slots=True)
class TableTransformValues(ObjectOperation):
    """Transforms the values of rows; the transformer is called for null, too. Source: KTableTransformValues."""

    emits_changes: ClassVar[bool] = True
    takes_changes: ClassVar[bool] = True
    supplier: UserFunction
    stores: tuple[str, ...]
    store: str | None = None
    send_old_values: bool = False

    def open(self, environment: OperatorEnvironment) -> Operator:
        transform = environment.transformer(self.supplier.call, self.stores)
        if self.store is not None:
            return materialized_operator(self, environment, transform, skips_nothing=False)
        forward, send_old = environment.forward, self.send_old_values

        def process(key: Any, new: Any, old: Any, timestamp: int, headers: Headers, is_latest: bool) -> None:
            value = transform(key, new)
            old_value = transform(key, old) if send_old else None
            forward(key, value, old_value, timestamp, headers, is_latest)

        return Operator(process)


@dataclass(eq=False, slots=True)
class TransformValuesGetter(ValueGetter):
    """Reads the parent's value and transforms it with an own transformer, whose context has no input record.

    Java cannot read such a table if the transformer has stores, because it does not connect the reader to them. Here
    the reader is connected.
    """

    parent: ValueGetter
    supplier: UserFunction
    stores: tuple[str, ...]

    def store_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.parent.store_names(), *self.stores)))

    def open(self, environment: OperatorEnvironment, *, flushed: bool = False) -> Get:
        parent, transformed = self.parent.open(environment, flushed=flushed), self._transformed(environment)
        return lambda key: transformed(key, parent(key))

    def open_as_of(self, environment: OperatorEnvironment) -> GetAsOf | None:
        parent = self.parent.open_as_of(environment)
        if parent is None:
            return None
        read, transformed = parent, self._transformed(environment)
        return lambda key, time: transformed(key, read(key, time))

    def _transformed(
        self, environment: OperatorEnvironment
    ) -> Callable[[Any, tuple[Any, int] | None], tuple[Any, int] | None]:
        transform = environment.transformer(self.supplier.call, self.stores)
        cell = environment.cell

        def transformed(key: Any, entry: tuple[Any, int] | None) -> tuple[Any, int] | None:
            value, timestamp = (None, -1) if entry is None else entry
            context = cell.record
            cell.record = (None, -1, -1, timestamp, NO_HEADERS)
            try:
                result = transform(key, value)
            finally:
                cell.record = context
            return None if result is None else (result, timestamp)

        return transformed
