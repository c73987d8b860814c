"""``make bench-queries`` on few flights: all that is asked gets an answer, and all is shown."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_few_flights_are_processed_alone_and_asked_for(tmp_path: Path) -> None:
    small = [
        "--years",
        "1",
        "--flights",
        "50000",
        "--rate",
        "100",
        "--repeats",
        "1",
        "--freshness",
        "latest",
        "--new-keys",
    ]
    command = [sys.executable, "-m", "tests.benchmarks.http_queries", *small, "--folder", str(tmp_path)]
    told = subprocess.run(
        command, cwd=Path(__file__).parents[3], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    alone = re.search(r"^alone: ([\d,]+) records/s$", told, re.MULTILINE)
    assert alone is not None, told
    assert int(alone[1].replace(",", "")) > 0
    assert "100 queries/s, latest:" in told
    statuses = re.search(r"answers (\{.*?\}), ", told)
    assert statuses is not None, told
    by_status = ast.literal_eval(statuses[1])
    assert by_status[200] > 0
    # An airline whose day has no flight yet is absent.
    assert set(by_status) <= {200, 404, 503}, told
    assert "p99" in told
    assert "processor time of 1,000 queries" in told
    events = re.search(r"for ([\d,]+) events$", told, re.MULTILINE)
    assert events is not None, told
    assert int(events[1].replace(",", "")) > 0
    assert list(tmp_path.iterdir()) == []
