"""A function that takes long holds a stop up for one record, not for all that wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pystreams.app import App
from pystreams.ids import TopicPartition
from tests.live.support import Log, eventually, run_to_the_end

#: Values that take no time, and values that take a second each. The time is the subject: whoever waits for one slow
#: value is done long before half a minute is over, and whoever waits for all is not.
FAST, SLOW = 20_000, 60
ROOT = Path(__file__).resolve().parents[3]


class Slow:
    """Takes a second for each value from FAST on; tells when that begins."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.mended = False

    def __call__(self, value: int) -> int:
        if value >= FAST and not self.mended:
            self.begun.set()
            threading.Event().wait(1)
        return value


@pytest.mark.parametrize("stateful", [False, True])
def test_close_waits_for_one_record_and_commits_what_is_done(log: Log, stateful: bool) -> None:
    log.create("in", "out")
    log.write("in", [("k", i, i) for i in range(FAST + SLOW)])
    slow = Slow()

    def app(**settings: Any) -> App:
        app = log.app("slow", **settings)
        values = app.stream("in", key=str, value=int).map_values(slow, value=int)
        values.to("out")
        if stateful:
            values.group_by_key().count(name="counts")
        return app

    streams = log.start(app(commit_interval_ms=600_000))
    eventually(slow.begun.is_set, "the first slow record")
    began = time.monotonic()
    assert streams.close(1000 * SLOW)
    assert time.monotonic() - began < SLOW / 2, "not all that wait"
    done = [record.value for record in log.read("out")]
    assert FAST < len(done) < FAST + SLOW
    assert log.committed("slow")[TopicPartition("in", 0)].offset == len(done)
    slow.mended = True
    run_to_the_end(log, app())
    assert [record.value for record in log.read("out")] == list(range(FAST + SLOW))
    if stateful:
        assert log.table("slow-counts-changelog") == {"k": FAST + SLOW}


PROGRAM = """
import sys, time
from pystreams import App
app = App("slow", commit_interval_ms=600_000)
def work(line):
    if line == "slow":
        print("working", file=sys.stderr, flush=True)
        time.sleep(1)
    return line
app.stream("in", value=str).map_values(work).to("out")
"""


def test_ctrl_c_stops_it_and_what_is_done_is_committed(folder: Path, pystreams: Any) -> None:
    (folder / "slow_program.py").write_text(PROGRAM, encoding="utf-8")
    pystreams("topics", "create", "in", "out")
    pystreams("produce", "in", stdin="fast\n" * 5_000 + "slow\n" * SLOW)
    with subprocess.Popen(
        [sys.executable, "-m", "pystreams", "run", "slow_program"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if line == "working\n":
                break
        running.send_signal(signal.SIGINT)
        began = time.monotonic()
        rest = running.stderr.read()
    assert running.returncode == 0, rest
    assert time.monotonic() - began < SLOW / 2
    assert "all is committed" in rest
    assert "Traceback" not in rest
    lines = [line.split("\t")[-1] for line in pystreams("consume", "out").lines]
    assert lines.count("fast") == 5_000
    assert 1 <= lines.count("slow") < 10
