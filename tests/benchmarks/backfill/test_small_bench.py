"""The benchmark of backfills measures what it says: same records for all, results that are compared, memory, time."""

from __future__ import annotations

import io
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from tests.benchmarks.backfill.bench import (
    JOBS,
    PEER_NAMES,
    SPREADS,
    Bench,
    Measured,
    Options,
    ResultsDifferError,
    _check,
)
from tests.benchmarks.backfill.inputs import PARTITIONS, SKEW, make_input
from tests.benchmarks.backfill.picture import picture
from tests.benchmarks.backfill.tables import boil_down, read_rows, write_rows

RECORDS = 20_000


@pytest.mark.parametrize("job", ["wordcount", "windows"])
@pytest.mark.parametrize("skewed", [False, True], ids=["even", "skewed"])
def test_an_input_has_all_records_in_order_and_is_spread_as_it_says(tmp_path, job, skewed):
    input = make_input(job, tmp_path / "archive", RECORDS, 1, skewed=skewed)
    counts = []
    for partition in range(PARTITIONS):
        offsets = [o for batch in input.batches(partition) for o in batch.column("offset").to_pylist()]
        assert offsets == list(range(len(offsets)))
        counts.append(len(offsets))
    assert sum(counts) == RECORDS
    share = max(counts) / RECORDS
    assert (abs(share - SKEW) < 0.02) if skewed else (share < 0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("job", "peers"),
    [
        ("wordcount", ("processes", "inline", "loop")),
        ("windows", ("inline", "loop")),
        ("declared", ("inline", "loop")),
    ],
)
def test_backfills_and_a_plain_loop_come_to_the_same(tmp_path, job, peers):
    # So many that the loop, too, takes more CPU time than the kernel's clock tick of 10 ms.
    options = Options((job,), ("skewed",), peers, 50_000, 1, "local[2]")
    found = Bench(tmp_path, options, Console(file=io.StringIO())).run()
    assert tuple(one.peer for one in found) == peers
    for one in found:
        assert 0 < one.work_s < one.total_s
        assert one.cpu_s > 0
        assert one.peak_rss_bytes > 10 << 20


def test_a_result_that_differs_is_found(tmp_path):
    input = make_input("windows", tmp_path / "archive", 100, 1, skewed=False)
    right = boil_down([(b"a", input.total - 1), (b"b", 1)])
    _check(input, "loop", right, None)
    with pytest.raises(ResultsDifferError, match="add up to"):
        _check(input, "loop", boil_down([(b"a", input.total - 1)]), None)
    with pytest.raises(ResultsDifferError, match="spark"):
        _check(input, "spark", boil_down([(b"a", 1), (b"b", input.total - 1)]), ("loop", right))


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = [(b"a", 1), (b"b", -5)]
    write_rows(tmp_path / "table", rows)
    assert read_rows(tmp_path / "table") == boil_down(rows) == boil_down(reversed(rows))


def test_the_picture_has_a_bar_for_each_run_as_long_as_its_rate():
    found = [
        Measured(job, spread, peer, 1_000, seconds, 1.0, seconds + 1, 100 << 20)
        for job in JOBS
        for spread in SPREADS
        for seconds, peer in enumerate(PEER_NAMES, start=1)
    ]
    drawn = ET.fromstring(picture(found))
    _, *bars = [float(one.get("width", 0)) for one in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(bars) == len(found)
    assert bars == pytest.approx([bars[0] / one.work_s for one in found], abs=0.1)
    said = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "500, 0.5 times live" in said
