"""``make bench-snapshots`` on few keys: each way reads what it should, and the table has both."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.benchmarks.snapshots.__main__ import ratio, table
from tests.benchmarks.snapshots.first_start import TAIL, FirstStart, Start


@pytest.mark.live
def test_with_a_snapshot_only_the_tail_is_read(tmp_path: Path) -> None:
    bench = FirstStart(tmp_path, 3_000, 2, 10)
    bench.prepare()
    assert bench.snapshot_bytes > 3_000 * 10
    assert bench.start("changelog", 0).records >= 3_000 + TAIL
    assert bench.start("snapshot", 0).records == TAIL


def test_the_table_has_every_start() -> None:
    starts = [Start("changelog", 1_000_000, 8.0), Start("snapshot", 1_000, 2.0)]
    printed = io.StringIO()
    Console(file=printed, width=100).print(table(starts))
    assert "1,000,000" in printed.getvalue()
    assert ratio(starts) == 4.0
