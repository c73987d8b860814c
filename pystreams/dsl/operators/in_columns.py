"""Decides whether an aggregation that folds does so in columns, which need numpy: live applications do without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pystreams.dsl.aggregates.aggregate import Row
from pystreams.dsl.aggregates.numbers import CountRecords
from pystreams.dsl.aggregates.rows import rows_of
from pystreams.dsl.aggregates.selectors import Selector
from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.final_results import Begin
from pystreams.dsl.operators.folding import one_more
from pystreams.dsl.operators.in_place import copier
from pystreams.functions import UserFunction


@dataclass(frozen=True, slots=True)
class _Single:
    """The table's value is the only state. ``merges``: values are numbers that are added."""

    merges: bool

    def row(self, states: tuple[Any, ...], /) -> Any:
        return states[0]

    def merge(self, one: Any, two: Any, /) -> Any:
        return one + two


def folded_in_columns(
    environment: OperatorEnvironment,
    store: Any,
    begin: Begin,
    function: UserFunction,
    bytes_max: int,
    *,
    size_ms: int | None = None,
    grace_ms: int = 0,
) -> Folded | None:
    """The operator of an aggregation, by windows of ``size_ms`` if they are given; None if it cannot be kept in
    columns: its function takes keys, or may change an aggregate in place. ``begin`` makes the first aggregate,
    ``function`` the next one. It holds about ``bytes_max`` bytes at most."""
    from pystreams.dsl.operators.final_columns import ColumnFold, Entries, Windows
    from pystreams.dsl.operators.state_columns import CountColumn, FunctionColumn, StateColumn, columns_of

    rows = rows_of(function)
    row: Row = _Single(merges=False)
    columns: list[StateColumn] | None = None
    if function.call is one_more:
        row, columns = _Single(merges=True), [CountColumn(CountRecords(Selector(_itself, None, None)))]
    elif rows is not None:
        row, columns = rows, columns_of(tuple(rows.aggregations.values()))
    if columns is None:
        if function.takes_key or function.takes_time or copier(environment, store.spec, needed=True):
            return None
        row, columns = _Single(merges=False), [FunctionColumn(begin, function.call)]
    windows = None if size_ms is None else Windows(size_ms, grace_ms)
    entries = Entries(environment, store, row, columns, windows, bytes_max)
    return ColumnFold(environment, entries, columns, windows)


def _itself(value: Any) -> Any:
    return value
