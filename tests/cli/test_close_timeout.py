"""A stop that cannot commit ends in the time that it is given, says what is not committed, and loses nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.live.support import eventually

#: Writes a file for each record that it begins, and hangs in one until the file ``go`` is there.
PROGRAM = """
import time
from pathlib import Path

from pystreams import App


def wait(line):
    Path(f"began-{line}").touch()
    while line == "hang" and not Path("go").exists():
        time.sleep(0.01)


app = App("hanging", commit_interval_ms=100)
app.stream("lines", value=str).peek(wait).to("out")
"""


@pytest.fixture
def program(folder, pystreams):
    """A program with its topics."""
    name = f"hanging_{os.urandom(4).hex()}"
    (folder / f"{name}.py").write_text(PROGRAM, encoding="utf-8")
    pystreams("topics", "create", "lines", "out")
    return name


@contextmanager
def run(name: str, *arguments: str) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-m", "pystreams", "run", name, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["one process", "workers"])
def test_it_ends_although_a_function_hangs_and_the_next_start_does_its_work_again(
    folder, pystreams, program, workers
):
    pystreams("produce", "lines", stdin="first\nhang\n")
    with run(program, "-s", "close_timeout_ms=500", *workers) as running:
        eventually((folder / "began-hang").exists)
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=240)
    assert running.returncode == 1, said
    assert "all is committed" not in said
    error = said[said.index("Error: the last commit of 0_0 was not done") :]
    assert "close_timeout_ms (0.5 s) is over" in error
    assert "processes 0_0 for" in error
    assert "nothing is lost" in error
    assert "Traceback" not in said
    (folder / "go").touch()
    again = pystreams("run", program, "--until-caught-up")
    assert again.code == 0
    assert pystreams("consume", "out").lines[-1].endswith("hang")


def test_a_stop_that_can_commit_is_as_ever(folder, pystreams, program):
    pystreams("produce", "lines", stdin="first\n")
    with run(program, "-s", "close_timeout_ms=200000") as running:
        eventually((folder / "began-first").exists)
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=240)
    assert running.returncode == 0, said
    assert "all is committed" in said
