"""Aggregates of event time: ``first``, ``last``."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from pystreams.dsl.aggregates.aggregate import Aggregation
from pystreams.dsl.aggregates.selectors import Selector

V = TypeVar("V")


class At(msgspec.Struct, Generic[V], frozen=True):
    """A value, and the timestamp (ms) of its record."""

    at: int
    value: V


class _Timed(Aggregation):
    """Base class: the value of one record, which its timestamp determines. None without a value."""

    needs_time = True

    def __init__(self, selector: Selector) -> None:
        type_: Any = selector.stored_type
        super().__init__(selector, At[type_] | None, shown_type=type_ | None, order_free=False)

    def update(self, state: At[Any] | None, chosen: Any, timestamp: int) -> Any:
        return self.merge(state, At(timestamp, chosen))

    def shown(self, state: At[Any] | None) -> Any:
        return None if state is None else state.value


class First(_Timed):
    """The value with the smallest timestamp; of several, the one that was processed first."""

    def merge(self, one: At[Any] | None, two: At[Any] | None) -> At[Any] | None:
        if one is None or two is None:
            return one or two
        return two if two.at < one.at else one


class Last(_Timed):
    """The value with the greatest timestamp; of several, the one that was processed last."""

    def merge(self, one: At[Any] | None, two: At[Any] | None) -> At[Any] | None:
        if one is None or two is None:
            return one or two
        return two if two.at >= one.at else one
