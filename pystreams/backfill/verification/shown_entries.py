"""Keys and values of entries as the program's types, in the form of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from pystreams.backfill.columns.store_columns import StoreColumns
from pystreams.backfill.compute.backfill_result import BackfillResult, ChangelogEntry
from pystreams.backfill.verification.outcome import Difference
from pystreams.errors import SerializationError
from pystreams.record import Headers
from pystreams.times import show_time

#: A value of a program in the form of JSON. Bytes are a text of hexadecimal digits.
Json = Any


class ShownDifference(NamedTuple):
    """A difference whose key and values are decoded. ``times`` are those of a window or session, by the names of their
    columns."""

    difference: Difference
    key: Json
    times: Mapping[str, str]
    live: list[dict[str, Json]]
    history: list[dict[str, Json]]


class ShownEntries:
    """The entries of one store."""

    def __init__(self, result: BackfillResult, store: str) -> None:
        self._columns = StoreColumns.of(result.application, store, raw=False)
        self._store = store

    def shown(self, differences: Iterable[Difference]) -> list[ShownDifference]:
        """The differences, decoded. Values that the store's types cannot read are shown as bytes."""
        return [self._shown(one) for one in differences]

    def _shown(self, one: Difference) -> ShownDifference:
        row = self._row(one.key, None)
        times = {name: value for name, value in row.items() if name.endswith(("_start", "_end"))}
        live, history = ([self._entry(entry) for entry in side] for side in (one.live, one.history))
        return ShownDifference(one, row["key"], times, live, history)

    def _entry(self, entry: ChangelogEntry) -> dict[str, Json]:
        value = self._row(entry.key, entry.value)["value"]
        shown = {"value": value, "timestamp": show_time(entry.timestamp)}
        return {**shown, "headers": _headers(entry.headers)} if entry.headers else shown

    def _row(self, key: bytes, value: bytes | None) -> dict[str, Json]:
        """The columns of an entry. Bytes that are not of the store's types stay what they are."""
        try:
            (batch,) = self._columns.batches([(key, value, None)], 0, self._store)  # type: ignore[list-item]
        except SerializationError:
            return {"key": _as_json(key), "value": _as_json(value)}
        return {name: _as_json(found) for name, found in batch.to_pylist()[0].items()}


def _headers(headers: Headers) -> list[list[Json]]:
    return [[name, _as_json(value)] for name, value in headers]


def _as_json(value: Any) -> Json:
    """A value of a column of Arrow."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.hex(" ")
        case datetime() if value.tzinfo is not None:
            return show_time(round(value.timestamp() * 1000))
        case dict():
            return {str(name): _as_json(part) for name, part in value.items()}
        case list() if value and isinstance(value[0], tuple):
            # A map, which Arrow gives as pairs.
            return {str(name): _as_json(part) for name, part in value}
        case list():
            return [_as_json(part) for part in value]
        case _:
            return str(value)
