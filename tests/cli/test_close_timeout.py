"""A stop that cannot commit ends in the time that it is given, says what is not committed, and loses nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from pystreams.cli import main
from pystreams.errors import StreamsError, TopicError
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


#: Has a thread for each topic, which notes its name there. One fails and the other hangs, each with a record of that
#: name; the file ``failed`` is there when the one that failed has ended.
TWO_THREADS = """
import threading, time
from pathlib import Path

from pystreams import App

failing = []


def work(topic):
    def note(line):
        Path(f"thread-of-{topic}").write_text(threading.current_thread().name)
        if line == "fail":
            failing.append(threading.current_thread())
            raise ValueError("no such city")
        while line == "hang":
            time.sleep(0.01)
            if failing and not failing[0].is_alive():
                Path("failed").touch()

    return note


app = App("two_threads", num_stream_threads=2)
for topic in ("lines", "others"):
    app.stream(topic, value=str).peek(work(topic)).to("out")
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


@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["one process", "workers"])
def test_a_failure_does_not_hide_that_another_thread_hangs(folder, pystreams, workers):
    def in_threads_of_their_own() -> bool:
        for topic in ("lines", "others"):
            assert pystreams("produce", topic, stdin="hello\n").code == 0
        names = {path.read_text() for path in folder.glob("thread-of-*")}
        return len(names) == 2

    (folder / "two_threads.py").write_text(TWO_THREADS, encoding="utf-8")
    pystreams("topics", "create", "lines", "others", "out")
    with run("two_threads", "-s", "close_timeout_ms=500", *workers) as running:
        eventually(in_threads_of_their_own)
        pystreams("produce", "lines", stdin="hang\n")
        pystreams("produce", "others", stdin="fail\n")
        eventually((folder / "failed").exists)
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=240)
    assert running.returncode == 1, said
    error = said[said.index("Error: ") :]
    assert "no such city" in error
    # The thread may have hung before it has published that the other task left it.
    assert re.search(
        r"the last commit of 0_0(, 1_0)? was not done: close_timeout_ms \(0\.5 s\) is over", error
    )
    assert "processes 0_0 for" in error


def ended_with(error: StreamsError, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The exit codes with which a command ends at once that fails with an error."""
    at_once: list[int] = []

    def fail(args: Sequence[str]) -> None:
        raise error

    monkeypatch.setattr(main, "command_for", lambda given: fail)
    monkeypatch.setattr(main, "end_now", at_once.append)
    with pytest.raises(SystemExit):
        main.main(["run"])
    return at_once


def test_a_process_whose_threads_are_at_work_ends_at_once_whatever_the_error(monkeypatch):
    """The interpreter would be taken down beneath them."""
    error = TopicError("topic 'lines' is missing")
    assert ended_with(error, monkeypatch) == []
    error.threads_at_work = True
    assert ended_with(error, monkeypatch) == [4]


def test_a_stop_that_can_commit_is_as_ever(folder, pystreams, program):
    pystreams("produce", "lines", stdin="first\n")
    with run(program, "-s", "close_timeout_ms=200000") as running:
        eventually((folder / "began-first").exists)
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=240)
    assert running.returncode == 0, said
    assert "all is committed" in said
