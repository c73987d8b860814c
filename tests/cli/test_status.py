"""``pystreams status`` and ``pystreams lag`` show an application as its log has it."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pystreams.clock import SystemClock
from pystreams.distribution import __version__
from pystreams.serving.address import Address
from pystreams.serving.server import HttpServer
from pystreams.serving.threads import ClientThreads, RestoreState, ThreadNow
from tests.cli.wordcount_kit import WORDCOUNT
from tests.live.support import eventually


@pytest.fixture
def program(folder, pystreams):
    """A program with its topics, and two records that wait."""
    name = f"counted_{os.urandom(4).hex()}"
    (folder / f"{name}.py").write_text(WORDCOUNT.format(id="counted"), encoding="utf-8")
    pystreams("topics", "create", "lines", "word-counts", "--partitions", "2")
    pystreams("produce", "lines", stdin="to be\nor not\n")
    return name


@contextmanager
def run_in_the_background(name: str, *arguments: str) -> Iterator[subprocess.Popen]:
    """The program in another process."""
    command = [sys.executable, "-m", "pystreams", "run", name, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def watching(
    command: str, program: str, *arguments: str, code: int = 0, **pipes: int
) -> Iterator[subprocess.Popen]:
    """``pystreams COMMAND PROGRAM --watch``, which Ctrl-C ends with this exit code."""
    words = [sys.executable, "-m", "pystreams", command, program, "--watch", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with subprocess.Popen(words, env=environment, text=True, **pipes) as process:
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == code
        finally:
            process.kill()


def states(pystreams, program, *arguments):
    """The JSON that ``status`` prints."""
    return [json.loads(line) for line in pystreams("status", program, "--json", *arguments).lines]


def test_an_application_that_does_not_run_says_so_with_its_exit_code(pystreams, program):
    shown = pystreams("status", program)
    assert shown.code == 1
    assert "does not run" in shown.err
    assert "2 records wait" in shown.err
    assert shown.out == ""


def test_an_application_that_has_run_and_stopped_does_not_run(pystreams, program):
    assert pystreams("run", program, "--until-caught-up").code == 0
    shown = pystreams("status", program)
    assert (shown.code, "counted does not run" in shown.err) == (1, True)
    (state,) = states(pystreams, program)
    assert (state["threads"], state["rebalancing"], state["lag"]) == ([], False, 0)


def test_an_application_whose_processes_were_all_killed_does_not_run(pystreams, program):
    with run_in_the_background(program, "--threads", "2") as process:
        eventually(lambda: len(states(pystreams, program)[0]["threads"]) == 2, "two threads run")
        process.kill()
        process.wait()
    shown = pystreams("status", program)
    assert (shown.code, "counted does not run" in shown.err) == (1, True)
    (state,) = states(pystreams, program)
    assert (state["threads"], state["rebalancing"]) == ([], False)


def test_each_worker_is_a_process(pystreams, program):
    with run_in_the_background(program, "--workers", "2", "--threads", "2") as process:

        def at_work():
            (state,) = states(pystreams, program)
            return len(state["threads"]) == 4 and not state["rebalancing"]

        try:
            eventually(at_work, "four threads run")
            assert "4 threads in 2 processes, 4 tasks." in pystreams("status", program).err
            assert "4 threads in 2 processes" in pystreams("lag", program).err
            assert "4 threads in 2 processes" in pystreams("threads", program).err
        finally:
            process.terminate()
            process.wait(60)


def test_lag_shows_each_partition_before_the_first_start(pystreams, program):
    shown = pystreams("lag", program)
    assert shown.code == 0
    rows = [line.split("\t") for line in shown.lines]
    assert [row[:5] for row in rows] == [
        ["lines", "0", "0_0", "(nobody)", "-"],
        ["lines", "1", "0_1", "(nobody)", "-"],
    ]
    assert sum(int(row[6]) for row in rows) == 2


def test_a_running_application_is_shown_thread_by_thread(pystreams, program):
    with run_in_the_background(program, "--threads", "2"):

        def caught_up():
            (state,) = states(pystreams, program)
            return (
                state if len(state["threads"]) == 2 and not state["unassigned"] and not state["lag"] else None
            )

        state = eventually(caught_up, "two threads have processed all")
        shown = pystreams("status", program)
        assert shown.code == 0
        assert "2 threads in 1 process, 4 tasks. No record waits." in shown.err
        names = [line.split("\t")[0] for line in shown.lines]
        process_id = state["threads"][0]["process_id"]
        assert names == [f"counted-{process_id[:8]}…-1-StreamThread-{number}" for number in (1, 2)]
        assert [one["thread"] for one in state["threads"]] == [
            name.replace(f"{process_id[:8]}…", process_id) for name in names
        ]
        tasks = {task for one in state["threads"] for task in one["tasks"]}
        assert tasks == {"0_0", "0_1", "1_0", "1_1"}
        assert f"pystreams {__version__}, Python {platform.python_version()}, program " in shown.err
        (versions,) = {(one["pystreams"], one["python"], one["fingerprint"]) for one in state["threads"]}
        assert versions[:2] == (__version__, platform.python_version())
        # Nobody says it: there is no HTTP server.
        assert [one["restoring"] for one in state["threads"]] == [None, None]
        rows = [line.split("\t") for line in pystreams("lag", program).lines]
        assert {row[0] for row in rows} == {"lines", "counted-counts-repartition"}
        assert {row[6] for row in rows} == {"0"}
        the_rate_is_watched(pystreams, program)


def the_rate_is_watched(pystreams, program):
    """Of a hundred lines and their words, which it commits while it is watched."""
    runs = (
        r"counted runs on .*: 2 threads in 1 process, 4 tasks\. "
        r"(.+) waits?(?:, ([\d,]+) are committed in a second)?\."
    )
    with watching("lag", program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as watch:
        assert re.fullmatch(runs, watch.stderr.readline().strip()).groups() == ("No record", None)
        pystreams("produce", "lines", stdin="word\n" * 100)
        rate = eventually(lambda: int(re.fullmatch(runs, watch.stderr.readline().strip())[2]))
        # There are two seconds between two looks.
        assert 0 < rate <= 100


def test_another_version_of_the_program_is_named(folder, pystreams, program):
    (folder / "newer_program.py").write_text(
        WORDCOUNT.format(id="counted").replace(".flat_map_values(str.split)", ""), encoding="utf-8"
    )
    with run_in_the_background(program):
        eventually(lambda: states(pystreams, program)[0]["threads"])
        assert "Another version of the program runs" in pystreams("status", "newer_program").err


class Restoring:
    """An instance whose thread restores: with each question 600 records fewer are left."""

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self.remaining = 3_000

    def application_id(self) -> str:
        return "counted"

    def threads(self) -> list[ClientThreads]:
        self.remaining -= 600
        restore = RestoreState("1_0", ["counts"], self.remaining)
        now = ThreadNow(self.thread, "partitions_assigned", [], [], [restore], "poll", 3, None, 3.0, None)
        return [ClientThreads("counted", SystemClock().now_ms(), [now])]


def test_restores_are_shown_with_what_is_left_their_rate_and_their_time(pystreams, program):
    with run_in_the_background(program):
        ours = eventually(lambda: states(pystreams, program)[0]["threads"])[0]["thread"]
        with HttpServer(Address("127.0.0.1", 0), Restoring(ours), token="not needed for this") as server:
            url = f"http://{server.address}"
            shown = pystreams("status", program, "--url", url)
            (line,) = [line for line in shown.err.splitlines() if "restores" in line]
            left, rate, minutes, seconds = re.fullmatch(
                r"1_0 restores counts: ([\d,]+) records left, (\d+) in a second, about (?:(\d+) min )?(\d+) s to go\.",
                line,
            ).groups()
            assert left == "1,800"
            assert 0 < int(rate) <= 600
            assert 60 * int(minutes or 0) + int(seconds) >= 3
            (state,) = states(pystreams, program, "--url", url)
            (restoring,) = state["threads"][0]["restoring"]
            assert (restoring["task"], restoring["stores"], restoring["remaining"]) == (
                "1_0",
                ["counts"],
                600,
            )
            assert restoring["eta_s"] >= 1
        # Another application at an address says nothing of this one, and one that is gone is named.
        with HttpServer(Address("127.0.0.1", 0), Restoring("other-1-StreamThread-1")) as server:
            assert "restores" not in pystreams("status", program, "--url", f"http://{server.address}").err
        shown = pystreams("status", program, "--url", f"http://{server.address}")
        assert (shown.code, "does not say whether it restores: Connection refused" in shown.err) == (0, True)


@pytest.mark.parametrize("command, code", [("status", 1), ("lag", 0)])
def test_watch_shows_one_state_after_the_other(pystreams, program, command, code):
    """As JSON; that nobody runs it is an error for ``status`` alone."""
    with watching(command, program, "--json", code=code, stdout=subprocess.PIPE) as watch:
        first = json.loads(watch.stdout.readline())
        assert (first["lag"], first["threads"]) == (2, [])
        assert [(one["topic"], one["partition"]) for one in first["inputs"]] == [("lines", 0), ("lines", 1)]
        pystreams("produce", "lines", stdin="more\n")
        eventually(lambda: json.loads(watch.stdout.readline())["lag"] == 3)


def test_a_topic_that_is_missing_is_named(folder, pystreams):
    (folder / "lonely_status.py").write_text(WORDCOUNT.format(id="lonely"), encoding="utf-8")
    pystreams("topics", "create", "word-counts")
    shown = pystreams("status", "lonely_status")
    assert shown.code == 4
    assert "lines" in shown.err
    assert "Traceback" not in shown.err


@contextmanager
def dying_in_a_refusal() -> Iterator[str]:
    """The address of an instance that ends in the middle of what it says."""

    def refuse(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1_000)
            connection.sendall(b"HTTP/1.1 503 Unavailable\r\nContent-Length: 1000\r\n\r\n{")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=refuse, args=(listening,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join(60)


def test_an_instance_that_cannot_be_asked_is_shown_as_such(pystreams, program):
    with dying_in_a_refusal() as dying:
        shown = pystreams("threads", program, "--json", "--url", dying, "--url", "[::1")
    assert shown.code == 0
    found = json.loads(shown.out)
    assert "IncompleteRead" in found["silent"][dying]
    assert "is not the URL of an application" in found["silent"]["[::1"]
