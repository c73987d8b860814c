"""While records are processed, full garbage collections, during which no thread can run, do not look at modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Each record is answered with how many objects collections look at, and how many they leave out.
PROGRAM = """
import gc

from pystreams import App

app = App("looking")
app.stream("in", key=str, value=str).map_values(
    lambda _: f"{len(gc.get_objects())} {gc.get_freeze_count()}", value=str
).to("out")
"""


@pytest.mark.parametrize("workers", [[], ["--workers", "1"]], ids=["alone", "workers"])
def test_collections_look_at_what_came_after_the_start_alone(folder, pystreams, workers) -> None:
    (folder / "looking.py").write_text(PROGRAM, encoding="utf-8")
    pystreams("topics", "create", "in", "out")
    pystreams("produce", "in", stdin="x\n")
    command = [sys.executable, "-m", "pystreams", "run", "looking", "--until-caught-up", *workers]
    # With a seed of its own it is started: a forked one begins with modules that are left out already.
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "1",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    subprocess.run(command, env=environment, check=True, capture_output=True)
    looked_at, left_out = map(int, pystreams("consume", "out").out.split()[-2:])
    assert 3 * looked_at < left_out
