"""Differences are shown with keys and values of the program's types; what these cannot read, as bytes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pystreams import App, SessionWindows, TimeWindows
from pystreams.backfill import backfill
from pystreams.backfill.compute.backfill_result import BackfillResult, ChangelogEntry
from pystreams.backfill.verification.outcome import Difference
from pystreams.backfill.verification.shown_entries import ShownDifference, ShownEntries
from pystreams.serde import serde_for
from pystreams.state.formats import pack_int64
from tests.backfill.kit import lines, memory


@dataclass
class Sale:
    at: datetime
    price: Decimal
    items: list[str]
    scan: bytes
    tags: dict[str, int]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> BackfillResult:
    app = App("shown")
    rows = app.stream("in", key=str, value=int).group_by_key()
    rows.aggregate(lambda: None, lambda _, value: value, value=Sale, name="sales")
    rows.count(name="counts")
    rows.windowed_by(TimeWindows.tumbling(1_000)).count(name="windows")
    rows.windowed_by(SessionWindows.of(1_000)).count(name="sessions")
    folder: Path = tmp_path_factory.mktemp("shown")
    return backfill(app, sources=memory({"in": [lines([])]}), staging=folder / "staging")


def shown(result: BackfillResult, store: str, key: bytes, *values: Any, **given: Any) -> ShownDifference:
    entries = tuple(ChangelogEntry(key, value, 1_000, **given) for value in values)
    (found,) = ShownEntries(result, store).shown([Difference("only live", 0, entries, ())])
    return found


def test_values_are_those_of_the_program(result: BackfillResult) -> None:
    sale = Sale(
        datetime(2026, 3, 1, 12, tzinfo=UTC), Decimal("1.5"), ["tea", "cake"], b"\x00\xff", {"vip": 1}
    )
    found = shown(result, "sales", b"ann", serde_for(Sale).serializer("t")(sale))
    assert (found.key, found.times, found.history) == ("ann", {}, [])
    (entry,) = found.live
    assert entry["timestamp"] == "1970-01-01T00:00:01Z"
    assert entry["value"]["items"] == ["tea", "cake"]
    assert entry["value"]["at"] == "2026-03-01T12:00:00Z"
    assert (entry["value"]["scan"], entry["value"]["tags"]) == ("00 ff", {"vip": 1})
    assert Decimal(entry["value"]["price"]) == Decimal("1.5")


def test_windows_and_sessions_are_apart_from_the_key(result: BackfillResult) -> None:
    window = b"ann" + pack_int64(60_000) + b"\0\0\0\0"
    found = shown(result, "windows", window, pack_int64(3))
    assert (found.key, found.live[0]["value"]) == ("ann", 3)
    assert found.times == {"window_start": "1970-01-01T00:01:00Z", "window_end": "1970-01-01T00:01:01Z"}
    session = b"ann" + pack_int64(60_500) + pack_int64(60_000)
    found = shown(result, "sessions", session, pack_int64(3))
    assert found.times == {
        "session_start": "1970-01-01T00:01:00Z",
        "session_end": "1970-01-01T00:01:00.500Z",
    }


def test_bytes_that_are_not_of_the_types_are_shown_as_they_are(result: BackfillResult) -> None:
    found = shown(result, "counts", b"ann", b"\x01\x02")
    assert (found.key, found.live[0]["value"]) == ("ann", "01 02")
    assert shown(result, "windows", b"ann", pack_int64(3)).key == "61 6e 6e"


def test_several_entries_under_one_key_headers_and_deletions(result: BackfillResult) -> None:
    found = shown(result, "counts", b"ann", pack_int64(1), None, headers=(("from", b"web"), ("no", None)))
    assert [entry["value"] for entry in found.live] == [1, None]
    assert found.live[0]["headers"] == [["from", "77 65 62"], ["no", None]]
