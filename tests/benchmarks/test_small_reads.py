"""``make bench-reads`` on few keys: each kind of read gets answers, also while the thread is stuck."""

from __future__ import annotations

import re

import pytest

from tests.benchmarks import queries

pytestmark = pytest.mark.live


def test_each_kind_of_read_gets_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(queries, "KEYS", 100)
    monkeypatch.setattr(queries, "SECONDS", 0.1)
    queries.main()
    lines = capsys.readouterr().out.splitlines()
    found = [re.fullmatch(r"(.+?) +([\d,]+) answers/s, the slowest ([\d.]+) ms", line) for line in lines]
    assert [line[1] for line in found if line is not None] == [
        "latest, idle",
        "committed, idle",
        "committed, the thread is stuck",
        "committed, stuck, the partitioner is known",
    ]
    assert all(int(line[2].replace(",", "")) > 0 for line in found if line is not None)
