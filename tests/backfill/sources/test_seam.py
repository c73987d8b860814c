"""At the boundary between a table and a log, a certain loss is refused, and what looks like a loss is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pystreams.backfill.sources.frames.seam import Seam, Times
from pystreams.errors import OffsetOutOfRangeError


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


BOUNDARY = ms("2026-11-26")
NOW = ms("2026-11-28")
TABLE = Times(129_440, ms("2026-11-08"), ms("2026-11-25T23:59"))
UNUSED = Times(500, BOUNDARY, ms("2026-11-26T02:00"))
LOG = Times(20_560, BOUNDARY)


def seam(table: Times = TABLE, unused: Times = UNUSED, log: Times = LOG, *, complete: bool = False) -> Seam:
    return Seam("orders", "table shop.orders", BOUNDARY, table, unused, log, complete)


def warnings(**given: Any) -> list[str]:
    one = seam(**given)
    one.check()
    return [remark.text for remark in one.remarks(NOW) if remark.kind == "warning"]


def test_what_is_there_is_told() -> None:
    assert [tuple(remark) for remark in seam().remarks(NOW)] == [
        (
            "boundary",
            "orders",
            (
                "table: 129,440 rows, 2026-11-08T00:00:00Z to 2026-11-25T23:59:00Z; log: 20,560 records from "
                "2026-11-26T00:00:00Z; boundary: 2026-11-26T00:00:00Z"
            ),
        )
    ]


def test_rows_that_neither_table_nor_log_gives_are_refused() -> None:
    with pytest.raises(OffsetOutOfRangeError, match="orders would be lost behind the boundary") as refused:
        seam(log=Times(20_560, ms("2026-11-26T01:00"))).check()
    assert (
        "some from 2026-11-26T00:00:00Z on, but the first record of the log is of 2026-11-26T01:00:00Z"
        in str(refused.value)
    )
    with pytest.raises(OffsetOutOfRangeError, match="has no record at or after 2026-11-26T00:00:00Z"):
        seam(log=Times()).check()


def test_a_log_that_reaches_back_is_whole_whatever_its_order_is() -> None:
    assert warnings(log=Times(20_560, ms("2026-11-26T01:00")), complete=True) == []


def test_a_large_gap_on_either_side_is_told() -> None:
    (before,) = warnings(table=Times(129_440, ms("2026-11-08"), ms("2026-11-23")))
    assert "the table ends at 2026-11-23T00:00:00Z, 3 d before the boundary" in before
    (behind,) = warnings(unused=Times(), log=Times(5, ms("2026-11-27T12:00")))
    assert "the log begins at 2026-11-27T12:00:00Z, 1 d 12 h behind the boundary" in behind


def test_a_table_with_a_row_a_week_has_no_large_gaps() -> None:
    weekly = Times(100, ms("2024-12-27"), ms("2026-11-20"))
    assert warnings(table=weekly, unused=Times(), log=Times(1, ms("2026-11-27T12:00"))) == []


def test_an_empty_table_is_told() -> None:
    (told,) = warnings(table=Times(), unused=Times())
    assert told.startswith("no row of the table is before the boundary, 2026-11-26T00:00:00Z; all records")


def test_a_log_without_records_is_told() -> None:
    (told,) = warnings(unused=Times(), log=Times())
    assert told.startswith("no record of the log is at or after the boundary")


def test_a_log_whose_first_record_is_not_found_is_told() -> None:
    (told,) = warnings(log=Times(7))
    assert "first record behind the boundary is not known" in told


def test_timestamps_in_another_unit_are_told() -> None:
    seconds = Times(10, 1_764_000_000, 1_764_100_000)
    told, _ = warnings(table=seconds, unused=Times())
    assert told.startswith(
        "rows of the table are older than the year 2000: timestamp 1764000000: most likely seconds"
    )
    microseconds = Times(10, 1_764_000_000_000_000, 1_764_100_000_000_000)
    told, empty = warnings(table=Times(), unused=microseconds)
    assert told.startswith(
        "rows of the table are from the future: timestamp 1764100000000000: most likely microseconds"
    )
    assert empty.startswith("no row of the table is before the boundary")
    (told,) = warnings(unused=Times(1, BOUNDARY, ms("2026-11-28T00:01")))
    assert (
        told == "rows of the table are from the future: 2026-11-28T00:01:00Z; check the unit and the column"
    )
