"""On SIGUSR1 a run logs where its threads are, also when a function of the program never returns; with workers each of
them does. It goes on afterwards."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.workers.workers_kit import WorkersRun
from tests.environment import without
from tests.live.support import Log, eventually

PROGRAM = """
import threading
from pystreams import App

def ponder(value):
    if value == 42:
        threading.Event().wait()
    return value

app = App("pondering", poll_ms=10)
app.stream("in", key=str, value=int).map_values(ponder, value=int).to("out")
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    without(monkeypatch, "PYSTREAMS_")
    (tmp_path / ".pystreams").mkdir()
    (tmp_path / "pondering.py").write_text(PROGRAM, encoding="utf-8")
    log = Log(tmp_path / ".pystreams")
    log.create("in", "out", partitions=2)
    yield log
    log.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    runs: list[WorkersRun] = []

    def start(*arguments: str) -> WorkersRun:
        runs.append(WorkersRun(tmp_path, "pondering", "--verbose", *arguments))
        return runs[-1]

    yield start
    for run in runs:
        run.close()


@pytest.mark.live
def test_a_function_that_does_not_return_is_in_the_stack_of_its_thread(log, start) -> None:
    run = start()
    # What is known of a thread is what it was after its last round.
    log.write("in", [("question", 1, 1)], partition=1)
    run.says("running +1 record ")
    log.write("in", [("question", 42, 2)], partition=1)
    asked = 0

    def stuck() -> bool:
        nonlocal asked
        if run.text.count("thread MainThread:") == asked:
            run.send(signal.SIGUSR1)
            asked += 1
        return "in ponder" in run.text

    eventually(stuck, "the thread is in the function")
    assert run.process.poll() is None
    run.says(r"thread pondering-\S+-StreamThread-1, running, tasks: 0_0 \(running\), 0_1 \(running\):")
    run.says(r"pondering\.py\", line 7, in ponder")


@pytest.mark.live
def test_a_run_goes_on_after_it(log, start) -> None:
    run = start("--log-format", "json")
    run.says("REBALANCING -> RUNNING")
    run.send(signal.SIGUSR1)
    run.says("thread MainThread")
    run.send(signal.SIGTERM)
    run.ends_with(0)
    lines = [json.loads(line) for line in run.text.splitlines()]
    assert any(
        "stream_thread.py" in line["message"] for line in lines if line["logger"] == "pystreams.cli.stacks"
    )


@pytest.mark.live
def test_every_worker_logs_its_own(log, start) -> None:
    run = start("--workers", "2")
    run.all_there(2)
    for number in (1, 2):
        run.says(rf"^worker {number} .*REBALANCING -> RUNNING")
    run.send(signal.SIGUSR1)
    for number in (1, 2):
        run.says(rf"^worker {number} .*thread pondering-\S*-{number}-StreamThread-1,")
    run.send(signal.SIGTERM)
    run.ends_with(0)
