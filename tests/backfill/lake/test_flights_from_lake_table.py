"""The example of a table without offsets, in small, with Iceberg and Delta."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.flights_from_table import Format
from tests.backfill.flights_kit import demo_of_table
from tests.backfill.lake.formats import jars


@pytest.mark.slow
@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("table", [Format.ICEBERG, Format.DELTA])
def test_ten_months_from_a_table_and_two_months_live_are_a_year_of_live(
    tmp_path: Path, table: Format
) -> None:
    assert "The same: " in demo_of_table(table, tmp_path, {"spark.jars": jars()})
