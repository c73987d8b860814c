"""Decides whether an aggregation that folds does so in columns, which need numpy: live applications do without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pystreams.dsl.aggregates.aggregate import Row
from pystreams.dsl.aggregates.numbers import CountRecords
from pystreams.dsl.aggregates.rows import rows_of
from pystreams.dsl.aggregates.selectors import Selector
from pystreams.dsl.operators.base import Folded, OperatorEnvironment
from pystreams.dsl.operators.final_results import Begin
from pystreams.dsl.operators.folding import one_more
from pystreams.dsl.operators.in_place import copier
from pystreams.functions import UserFunction

if TYPE_CHECKING:
    from pystreams.dsl.operators.state_columns import StateColumn


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
    from pystreams.dsl.operators.state_columns import FunctionColumn

    row, columns = columns_for(function, begin, function.call)
    if isinstance(columns[0], FunctionColumn) and (
        function.takes_key or function.takes_time or copier(environment, store.spec, needed=True)
    ):
        return None
    windows = None if size_ms is None else Windows(size_ms, grace_ms)
    entries = Entries(environment, store, row, columns, windows, bytes_max)
    return ColumnFold(environment, entries, columns, windows)


def columns_for(
    function: UserFunction, begin: Begin, update: Callable[[Any, Any], Any]
) -> tuple[Row, Sequence[StateColumn]]:
    """The columns of an aggregation, and what makes aggregates of their states: arrays, if ``function`` counts or is
    that of declared aggregates that can be kept in arrays; else a column of objects, which ``begin`` and ``update``
    make."""
    from pystreams.dsl.operators.state_columns import CountColumn, FunctionColumn, columns_of

    if function.call is one_more:
        return _Single(merges=True), [CountColumn(CountRecords(Selector(_itself, None, None)))]
    rows = rows_of(function)
    columns = None if rows is None else columns_of(tuple(rows.aggregations.values()))
    if rows is not None and columns is not None:
        return rows, columns
    return _Single(merges=False), [FunctionColumn(begin, update)]


def _itself(value: Any) -> Any:
    return value
