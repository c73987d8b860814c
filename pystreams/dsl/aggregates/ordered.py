"""Aggregates that compare values: ``min``, ``max``, ``top``."""

from __future__ import annotations

import datetime as dt
import uuid
from abc import abstractmethod
from typing import Any, Final, Generic, TypeVar

import msgspec

from pystreams.dsl.aggregates.aggregate import Aggregation
from pystreams.dsl.aggregates.selectors import Selector

V = TypeVar("V")
B = TypeVar("B")

#: Types whose equal values have the same bytes. (Decimals 1.0 and 1.00 are equal, and so are times in two time zones.)
#: Of untyped values, an int comes before an equal float.
_SAME_IF_EQUAL: Final = (None, int, float, str, bytes, bool, dt.date, uuid.UUID)


def _comes_first(one: Any, other: Any) -> bool:
    """Whether ``one`` comes before ``other``, which is equal."""
    return one.__class__ is int and other.__class__ is float


class _Extreme(Aggregation):
    """Base class: one of the values; None without a value. Of equal ones it is the first."""

    def __init__(self, selector: Selector) -> None:
        super().__init__(selector, selector.stored_type | None, order_free=selector.type in _SAME_IF_EQUAL)

    @abstractmethod
    def _beats(self, value: Any, other: Any) -> bool: ...

    def update(self, state: Any, chosen: Any, timestamp: int) -> Any:
        if state is None or self._beats(chosen, state):
            return chosen
        return chosen if chosen == state and _comes_first(chosen, state) else state

    def merge(self, one: Any, two: Any) -> Any:
        return one if two is None else self.update(one, two, 0)


class Min(_Extreme):
    """The smallest value."""

    def _beats(self, value: Any, other: Any) -> bool:
        return bool(value < other)


class Max(_Extreme):
    """The largest value."""

    def _beats(self, value: Any, other: Any) -> bool:
        return bool(value > other)


class _Largest(Aggregation):
    """Base class: the first ``n`` in an order; of equal ones, those that were added first."""

    empty = ()
    n: int

    @abstractmethod
    def _before(self, one: Any, other: Any) -> bool:
        """Whether ``one`` comes before ``other``, which was added earlier."""

    def update(self, state: tuple[Any, ...], chosen: Any, timestamp: int) -> tuple[Any, ...]:
        place = len(state)
        while place and self._before(chosen, state[place - 1]):
            place -= 1
        return state if place == self.n else (*state[:place], chosen, *state[place:])[: self.n]

    def merge(self, one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
        for chosen in two:
            one = self.update(one, chosen, 0)
        return one


class Top(_Largest):
    """The ``n`` largest values, the largest first. A value occurs as often as it was added."""

    def __init__(self, selector: Selector, n: int) -> None:
        state: Any = tuple[selector.stored_type, ...]  # type: ignore[name-defined]
        super().__init__(selector, state, order_free=selector.type in _SAME_IF_EQUAL)
        self.n = n

    def _before(self, one: Any, other: Any) -> bool:
        return bool(one > other) or (one == other and _comes_first(one, other))


class Ranked(msgspec.Struct, Generic[V, B], frozen=True):
    """A value, and the value of the same record by which it is ranked."""

    value: V
    by: B


class TopBy(_Largest):
    """Of the ``n`` records with the largest values of ``by``: what ``selector`` chooses. Of records with an equal
    ``by``, the earlier ones are kept, in the order of processing."""

    def __init__(self, selector: Selector, n: int, by: Selector) -> None:
        of, ranked_by = selector.stored_type, by.stored_type
        state: Any = tuple[Ranked[of, ranked_by], ...]  # type: ignore[valid-type]
        super().__init__(selector, state, shown_type=tuple[of, ...], order_free=False)  # type: ignore[valid-type]
        self.n = n
        self.by = by

    def add(self, state: tuple[Ranked[Any, Any], ...], value: Any, timestamp: int) -> Any:
        chosen, by = (None, None) if value is None else (self.selector.choose(value), self.by.choose(value))
        return state if chosen is None or by is None else self.update(state, Ranked(chosen, by), timestamp)

    def _before(self, one: Ranked[Any, Any], other: Ranked[Any, Any]) -> bool:
        return bool(one.by > other.by)

    def shown(self, state: tuple[Ranked[Any, Any], ...]) -> tuple[Any, ...]:
        return tuple(ranked.value for ranked in state)
