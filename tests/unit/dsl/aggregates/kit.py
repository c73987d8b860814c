"""Declared aggregates bound to values of a type, and folded over lists of (value, timestamp)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pystreams.agg import Aggregate
from pystreams.dsl.aggregates.declaring import declared
from pystreams.dsl.aggregates.rows import Rows
from pystreams.dsl.materialized import StoreName, StoreOptions
from pystreams.serde import serde_for


def rows_over(values: Any, fields: Mapping[str, Aggregate]) -> Rows:
    """The rows of these fields; ``values`` is the type of a stream's values."""
    return declared(fields, StoreOptions(), StoreName("totals", True), serde_for(values)).rows


def folded(rows: Rows, records: Iterable[tuple[Any, int]]) -> Any:
    row = rows.empty()
    for value, timestamp in records:
        row = rows.add_at(row, value, timestamp)
    return row


def field(values: Any, aggregate: Aggregate, records: Iterable[tuple[Any, int]]) -> Any:
    """What is shown of one aggregate."""
    return folded(rows_over(values, {"it": aggregate}), records).it
