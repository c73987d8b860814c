"""Aggregates that count and add: ``count``, ``sum``, ``mean``."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Generic, TypeVar

import msgspec

from pystreams.dsl.aggregates.aggregate import Aggregation
from pystreams.dsl.aggregates.selectors import Selector

N = TypeVar("N")


class Count(Aggregation):
    """The number of records of which the chosen value is not None."""

    empty = 0

    def __init__(self, selector: Selector) -> None:
        super().__init__(selector, int, order_free=True)

    def update(self, state: int, chosen: Any, timestamp: int) -> int:
        return state + 1

    def merge(self, one: int, two: int) -> int:
        return one + two


class CountRecords(Count):
    """The number of records, of null values, too."""

    def add(self, state: int, value: Any, timestamp: int) -> int:
        return state + 1


class Sum(Aggregation):
    """The sum; None without a value, as in SQL.

    Sums of int are exact. Those of float and Decimal are rounded, so the last digits depend on the order.
    """

    def __init__(self, selector: Selector) -> None:
        super().__init__(selector, _number(selector) | None, order_free=_exact(selector))

    def merges_freely(self, state: Any) -> bool:
        return state is None or state.__class__ is int

    def update(self, state: Any, chosen: Any, timestamp: int) -> Any:
        return chosen if state is None else _added(state, chosen)

    def merge(self, one: Any, two: Any) -> Any:
        return one if two is None else self.update(one, two, 0)


class MeanState(msgspec.Struct, Generic[N], frozen=True):
    """The numbers of which a mean is computed."""

    sum: N
    count: int


class Mean(Aggregation):
    """The arithmetic mean, a float, or a Decimal of Decimals; None without a value. Its order is that of the sum."""

    def __init__(self, selector: Selector) -> None:
        state: Any = MeanState[_number(selector)]  # type: ignore[misc]
        shown = Decimal if selector.type is Decimal else float
        super().__init__(selector, state | None, shown_type=shown | None, order_free=_exact(selector))

    def merges_freely(self, state: MeanState[Any] | None) -> bool:
        return state is None or state.sum.__class__ is int

    def update(self, state: MeanState[Any] | None, chosen: Any, timestamp: int) -> MeanState[Any]:
        if state is None:
            return MeanState(chosen, 1)
        return MeanState(_added(state.sum, chosen), state.count + 1)

    def merge(self, one: MeanState[Any] | None, two: MeanState[Any] | None) -> MeanState[Any] | None:
        if one is None or two is None:
            return one or two
        return MeanState(_added(one.sum, two.sum), one.count + two.count)

    def shown(self, state: MeanState[Any] | None) -> Any:
        return None if state is None else state.sum / state.count


def _number(selector: Selector) -> Any:
    return int | float if selector.type is None else selector.type


def _exact(selector: Selector) -> bool | None:
    return None if selector.type is None else selector.type is int


def _added(one: Any, two: Any) -> Any:
    total = one + two
    # Only an infinite float is not 0 when it is subtracted from itself.
    if total.__class__ is float and total - total != 0.0:
        raise OverflowError(f"the sum of {one!r} and {two!r} is too large for a float")
    return total
