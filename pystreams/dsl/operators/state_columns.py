"""The states of an aggregation as columns: one for all keys, to which a whole batch of records is added at once.

The states of declared aggregates of whole numbers are arrays, if they may be merged in any order; those of other
aggregations are lists of objects, which the program's function changes record by record. Numbers that 64 bits might not
hold raise ``OverflowError``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from pystreams.dsl.aggregates.aggregate import Aggregation
from pystreams.dsl.aggregates.numbers import Count, CountRecords, Mean, MeanState, Sum
from pystreams.dsl.aggregates.ordered import Max, Min

#: Places of states in their columns, one for each record: an array.
Places: TypeAlias = Any
#: The values to add, one for each record, and where there is none (None: nowhere): arrays, or a list of objects.
Chosen: TypeAlias = tuple[Any, Any]

#: The largest number of records that are added at once.
BATCH_RECORDS: Final = 16_384
#: A sum stays below ``_SUM_MAX``, so that a batch of numbers below ``_NUMBER_MAX`` cannot leave 64 bits.
_SUM_MAX: Final = 1 << 62
_NUMBER_MAX: Final = _SUM_MAX // BATCH_RECORDS
_INT64: Final = np.iinfo(np.int64)


class StateColumn(Protocol):
    """The states of one aggregate. A place is empty until a value is added there."""

    @property
    def choose(self) -> Callable[[Any], Any] | None:
        """Chooses the part of a value that is added; None: the value does not matter."""
        ...

    @property
    def adds_itself(self) -> bool:
        """Whether ``choose`` gives the value itself."""
        ...

    def taken(self, chosen: Any) -> Chosen:
        """The values chosen from the records (a list, or an array of whole numbers) as ``add`` takes it. Raises
        ``TypeError`` and ``OverflowError`` for what cannot be added."""
        ...

    def resize(self, size: int) -> None:
        """Make room for ``size`` places."""
        ...

    def clear(self, places: Places) -> None:
        """Make places empty."""
        ...

    def add(self, places: Places, chosen: Any) -> Sequence[int]:
        """Add what was taken of each record to the state at its place. Returns the numbers of the records with which
        states began again that a function had deleted."""
        ...

    def states(self, places: Places) -> list[Any]:
        """The states at some places."""
        ...


class FunctionColumn:
    """The aggregates of a program's function. ``begin`` makes the first of a key (None) and a value, ``update`` the
    next one."""

    adds_itself = True

    def __init__(self, begin: Callable[[Any, Any], Any], update: Callable[[Any, Any], Any]) -> None:
        self._begin = begin
        self._update = update
        self._aggregates: list[Any] = []
        #: The places of aggregates that the function has deleted.
        self._deleted: set[int] = set()

    def choose(self, value: Any) -> Any:
        return value

    def taken(self, chosen: Any) -> Chosen:
        return (chosen if isinstance(chosen, list) else chosen.tolist()), None

    def resize(self, size: int) -> None:
        self._aggregates += [None] * (size - len(self._aggregates))

    def clear(self, places: Places) -> None:
        for place in places.tolist():
            self._aggregates[place] = None
        self._deleted.difference_update(places.tolist())

    def load(self, place: int, aggregate: Any) -> None:
        """Begin with an aggregate of earlier records."""
        self._aggregates[place] = aggregate

    def add(self, places: Places, chosen: Any) -> Sequence[int]:
        aggregates, begin, update, deleted = self._aggregates, self._begin, self._update, self._deleted
        began_again: list[int] = []
        for number, (place, value) in enumerate(zip(places.tolist(), chosen, strict=True)):
            before = aggregates[place]
            if before is None:
                aggregate = begin(None, value)
                if place in deleted:
                    deleted.remove(place)
                    began_again.append(number)
            else:
                aggregate = update(before, value)
            if aggregate is None:
                deleted.add(place)
            aggregates[place] = aggregate
        return began_again

    def states(self, places: Places) -> list[Any]:
        return [self._aggregates[place] for place in places.tolist()]


class _Column:
    """Arrays that are resized together, each with the number that empty places have."""

    def __init__(self, part: Aggregation, **empty: int) -> None:
        self.choose: Callable[[Any], Any] | None = part.selector.choose
        self.adds_itself = part.selector.itself
        self._empty = empty
        self._arrays = {name: np.full(0, number, np.int64) for name, number in empty.items()}

    def __getitem__(self, name: str) -> Any:
        return self._arrays[name]

    def taken(self, chosen: Any) -> Chosen:
        if not isinstance(chosen, list):
            return chosen, None
        kinds = set(map(type, chosen))
        if not kinds <= {int, NoneType}:
            raise TypeError(f"{', '.join(sorted(kind.__name__ for kind in kinds))} are not whole numbers")
        missing = _missing(chosen) if NoneType in kinds else None
        numbers = chosen if missing is None else [0 if one is None else one for one in chosen]
        return np.array(numbers, np.int64), missing

    def resize(self, size: int) -> None:
        for name, array in self._arrays.items():
            self._arrays[name] = extended(array, size, self._empty[name])

    def clear(self, places: Places) -> None:
        for name, array in self._arrays.items():
            array[places] = self._empty[name]


class CountColumn(_Column):
    """How many were chosen."""

    def __init__(self, part: Aggregation) -> None:
        super().__init__(part, count=0)
        if isinstance(part, CountRecords):
            self.choose = None

    def taken(self, chosen: Any) -> Chosen:
        missing = _missing(chosen)
        return None, missing if missing.any() else None

    def add(self, places: Places, chosen: Any) -> Sequence[int]:
        np.add.at(self["count"], places, 1)
        return ()

    def states(self, places: Places) -> list[Any]:
        return list(self["count"][places].tolist())


class SumColumn(_Column):
    """Sums; None of nothing."""

    def __init__(self, part: Aggregation) -> None:
        super().__init__(part, sum=0, count=0)

    def add(self, places: Places, chosen: Any) -> Sequence[int]:
        if not len(places):
            return ()
        if max(int(chosen.max()), -int(chosen.min())) >= _NUMBER_MAX:
            raise OverflowError("a number is so large that its sum might not fit into 64 bits")
        sums = self["sum"]
        np.add.at(sums, places, chosen)
        np.add.at(self["count"], places, 1)
        if int(np.abs(sums[places]).max()) >= _SUM_MAX:
            raise OverflowError("a sum might not fit into 64 bits")
        return ()

    def states(self, places: Places) -> list[Any]:
        pairs = zip(self["sum"][places].tolist(), self["count"][places].tolist(), strict=True)
        return [total if count else None for total, count in pairs]


class MeanColumn(SumColumn):
    """Sums and how many were added; None of nothing."""

    def states(self, places: Places) -> list[Any]:
        pairs = zip(self["sum"][places].tolist(), self["count"][places].tolist(), strict=True)
        return [MeanState(total, count) if count else None for total, count in pairs]


class _ExtremeColumn(_Column):
    """The smallest or the largest number; None of nothing."""

    def __init__(self, part: Aggregation, empty: int, fold: Callable[[Any, Places, Any], None]) -> None:
        super().__init__(part, extreme=empty, count=0)
        self._fold = fold

    def add(self, places: Places, chosen: Any) -> Sequence[int]:
        self._fold(self["extreme"], places, chosen)
        self["count"][places] = 1
        return ()

    def states(self, places: Places) -> list[Any]:
        pairs = zip(self["extreme"][places].tolist(), self["count"][places].tolist(), strict=True)
        return [extreme if count else None for extreme, count in pairs]


_COLUMNS: Final[Mapping[type[Aggregation], Callable[[Aggregation], StateColumn]]] = {
    Count: CountColumn,
    CountRecords: CountColumn,
    Sum: SumColumn,
    Mean: MeanColumn,
    Min: lambda part: _ExtremeColumn(part, _INT64.max, np.minimum.at),
    Max: lambda part: _ExtremeColumn(part, _INT64.min, np.maximum.at),
}


def columns_of(parts: Sequence[Aggregation]) -> list[StateColumn] | None:
    """An array for each aggregate; None if one of them cannot be kept in arrays."""
    if not all(map(_fits, parts)):
        return None
    return [_COLUMNS[type(part)](part) for part in parts]


def taken_of(column: StateColumn, values: Sequence[Any]) -> Chosen:
    """The parts of these values that a column adds; some values may be None. Raises as ``StateColumn.taken``."""
    choose = column.choose
    if choose is None:
        return None, None
    if column.adds_itself:
        return column.taken(values)
    return column.taken([None if value is None else choose(value) for value in values])


def add_chosen(column: StateColumn, places: Places, chosen: Chosen) -> Sequence[int]:
    """Add to the states at some places what was taken for each of them. Returns the same as ``StateColumn.add``."""
    taken, missing = chosen
    if missing is None:
        return column.add(places, taken)
    there = ~missing
    return column.add(places[there], None if taken is None else taken[there])


def states_at(columns: Sequence[StateColumn], places: Places) -> list[tuple[Any, ...]]:
    """For each place its states, one of each column."""
    return list(zip(*(column.states(places) for column in columns), strict=True))


def extended(array: Any, size: int, empty: int) -> Any:
    """The array, extended to ``size`` whole numbers; the new ones are ``empty``."""
    return np.concatenate([array, np.full(size - len(array), empty, np.int64)])


def _fits(part: Aggregation) -> bool:
    if type(part) not in _COLUMNS:
        return False
    return isinstance(part, Count) or (bool(part.order_free) and part.selector.type is int)


def _missing(chosen: Sequence[Any]) -> Any:
    return np.array([one is None for one in chosen], bool)
