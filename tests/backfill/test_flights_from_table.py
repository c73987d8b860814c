"""The example of a table without offsets, in small, with plain Parquet. Iceberg and Delta: ``tests/backfill/lake``."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps import flights_from_table
from apps.flights import MEAN_DELAYS
from apps.flights_from_table import Format
from pystreams import open_log
from tests.backfill.flights_kit import demo_of_table


@pytest.mark.slow
def test_ten_months_from_parquet_and_two_months_live_are_a_year_of_live(tmp_path: Path) -> None:
    assert "The same: " in demo_of_table(Format.PARQUET, tmp_path)


@pytest.mark.parametrize(
    "mine,yours,said",
    [
        ([("a", b"1", 1), ("a", b"2", 2)], [("a", b"2", 2)], "The same: 1 results"),
        ([("a", b"1", 1)], [("a", b"1", 2)], "Different for b'a'"),
        ([("a", b"1", 1)], [("a", b"1", 1), ("b", b"1", 1)], "Different for b'b'"),
        ([], [], "Nothing to compare"),
    ],
)
def test_the_comparison_is_of_the_last_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mine: list[object], yours: list[object], said: str
) -> None:
    for name, records in (("mine", mine), ("yours", yours)):
        with open_log(tmp_path / name) as log:
            log.create_topic(MEAN_DELAYS, 2, config={"retention.ms": "-1"})
            log.produce_many(MEAN_DELAYS, records)
    same = flights_from_table.compare(tmp_path / "mine", tmp_path / "yours")
    assert same == said.startswith("The same")
    assert said in capsys.readouterr().out
