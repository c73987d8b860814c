"""Workers of a new version take over together: content moves once, and a refusal is told once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.workers.workers_kit import Start, WorkersRun
from tests.live.support import Log

PROGRAM = """
from pystreams import App

app = App("shop", poll_ms=10)
app.stream("in", key=str, value=int).group_by_key().count({store}).to_stream().to("out")
"""
KEYS = "abcdefgh"


@pytest.fixture
def log(folder: Path) -> Iterator[Log]:
    (folder / ".pystreams").mkdir()
    log = Log(folder / ".pystreams")
    log.create("in", "out", partitions=4)
    yield log
    log.close()


@pytest.fixture
def run(folder: Path, log: Log) -> Iterator[Start]:
    runs: list[WorkersRun] = []

    def run(store: str, *arguments: str) -> WorkersRun:
        log.write("in", [(key, 1, 1_000) for key in KEYS])
        name = f"version_{len(runs)}"
        (folder / f"{name}.py").write_text(PROGRAM.format(store=store), encoding="utf-8")
        runs.append(WorkersRun(folder, name, "--workers", "2", "--until-caught-up", *arguments))
        return runs[-1]

    yield run
    for one in runs:
        one.close()


def test_content_is_carried_over_once_and_a_refusal_is_told_once(log: Log, run: Start) -> None:
    run('name="counts"').ends_with(0)
    run('name="totals", was="counts"').ends_with(0)
    assert log.table("out") == dict.fromkeys(KEYS, 2)
    assert len(log.read("shop-totals-changelog")) == 2 * len(KEYS)
    refused = run('name="sums"')
    refused.ends_with(3)
    assert refused.text.count("stored content would be lost: totals") == 1
    assert log.table("out") == dict.fromkeys(KEYS, 2)
    # The records of the refused run are counted, too, from the beginning: all workers have accepted the loss.
    run('name="sums"', "--accept-loss", "totals").ends_with(0)
    assert log.table("out") == dict.fromkeys(KEYS, 2)
