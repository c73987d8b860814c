"""A program that tests fork sees what it would see if it had been started, and ends as it would."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.support import eventually
from tests.starting.forked import Nursery, Popen, _program

ROOT = Path(__file__).resolve().parents[2]

started = Popen.__mro__[1]


def program(how: type, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "tests.starting.probe", *arguments]
    return how(command, text=True, **{**pipes, **options})


def both(*arguments: str, **options: Any) -> list[tuple[dict[str, Any], str, int | None]]:
    found = []
    for how in (started, Popen):
        with program(how, *arguments, **options) as process:
            assert (getattr(process, "_status", None) is not None) == (how is Popen)
            out, err = process.communicate("a line\r\n", timeout=60)
            seen = json.loads(out)
            # Python chooses its seed at random.
            del seen["hash"]
            found.append((seen, err, process.returncode))
    return found


def test_it_sees_the_same_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("A_TEST_HAS", "set this")
    # With env=None a started program also gets variables that C code (readline) has set and os.environ does not show.
    environment = dict(os.environ)
    old, hang_up = os.umask(0o027), signal.signal(signal.SIGHUP, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    try:
        one, other = both("ä", "", "two words", cwd=tmp_path, env=environment)
    finally:
        os.umask(old)
        signal.signal(signal.SIGHUP, hang_up)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert other[0] == one[0]
    assert other[0]["environment"]["A_TEST_HAS"] == "set this"
    assert other[0]["folder"] == str(tmp_path)
    assert other[0]["mask"] == 0o027
    assert other[0]["input"] == "a line\r\n"


def test_descriptors_session_and_path_are_those_that_it_was_given(tmp_path: Path):
    read, write = os.pipe()
    places = f"{tmp_path}:{ROOT}:{tmp_path}"
    environment = {**os.environ, "PYTHONPATH": places, "PYTHONUNBUFFERED": "1"}
    try:
        one, other = both("none", pass_fds=[read, write], start_new_session=True, env=environment)
    finally:
        os.close(read)
        os.close(write)
    assert other[0] == one[0]
    assert {read, write} <= set(other[0]["descriptors"])
    assert other[0]["session"]
    assert str(tmp_path) in other[0]["path"]
    assert other[0]["through"][1:] == [True, True]


@pytest.mark.parametrize(("argument", "code"), [("none", 0), ("exit", 7), ("fail", 1)])
def test_it_ends_with_the_same_code(argument: str, code: int):
    one, other = both(argument)
    assert (one[2], other[2]) == (code, code)
    assert other[1].splitlines()[-1:] == one[1].splitlines()[-1:]


@pytest.mark.parametrize("how", [started, Popen], ids=["started", "forked"])
def test_it_prints_its_stacks_when_it_is_aborted_if_a_variable_says_so(how: type):
    with program(how, "wait", env={**os.environ, "PYTHONFAULTHANDLER": "1"}) as process:
        assert (getattr(process, "_status", None) is not None) == (how is Popen)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("a line\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["faults"]
        process.send_signal(signal.SIGABRT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in err
    assert "tests/starting/probe.py" in err


def test_one_that_has_ended_can_be_sent_a_signal_until_its_status_is_read():
    with program(Popen, "none", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.read()
        eventually(lambda: "State:\tZ" in Path(f"/proc/{process.pid}/status").read_text(), "it has ended")
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 0
        eventually(lambda: not Path(f"/proc/{process.pid}").exists(), "its pid is free")


def ended() -> int:
    """The pid of a program that has ended."""
    with program(Popen, "none") as process:
        process.communicate("a line\n", timeout=60)
        assert process.returncode == 0
    eventually(lambda: not Path(f"/proc/{process.pid}").exists(), "its pid is free")
    return process.pid


def test_a_pid_that_another_program_has_had_has_a_status_of_its_own():
    last = Path("/proc/sys/kernel/ns_last_pid")
    if not os.access(last, os.W_OK):
        pytest.skip("only root chooses the next pid")
    for _ in range(20):
        former = ended()
        # The next one comes from the other process that forks.
        ended()
        last.write_text(str(former - 1))
        if ended() == former:
            return
    pytest.skip("others took the pid each time")


def test_programs_that_work_together_differ_in_the_seed_of_their_hashes():
    seeds = set()
    for _ in range(2):
        with program(Popen, "none") as process:
            out, _ = process.communicate("a line\n", timeout=60)
            seeds.add(json.loads(out)["hash"])
    assert len(seeds) == 2


def test_a_folder_that_is_missing_is_reported_as_by_python(tmp_path: Path):
    for how in (started, Popen):
        with pytest.raises(FileNotFoundError, match="missing"):
            program(how, "none", cwd=tmp_path / "missing")


def test_a_nursery_that_is_gone_is_started_again():
    nursery = Nursery()
    first, status = forked_by(nursery)
    status.close()
    assert nursery._process is not None
    nursery._process.kill()
    nursery._process.wait(60)
    second, status = forked_by(nursery)
    status.close()
    assert first != second
    nursery.stop()


def forked_by(nursery: Nursery) -> tuple[int, socket.socket]:
    command = [sys.executable, "-m", "tests.starting.probe", "none"]
    arguments = {"args": command, "cwd": None, "start_new_session": False}
    with Path(os.devnull).open("r+b") as nowhere:
        return nursery.fork(_program(arguments, dict(os.environ), [0, 1, 2]), [nowhere.fileno()] * 3)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_signals_reach_it_and_its_end_is_seen(number: signal.Signals):
    with program(Popen, "wait", stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("a line\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.05)
        process.send_signal(number)
        assert process.wait(60) == -number
        assert process.poll() == -number


@pytest.mark.parametrize(
    "options",
    [
        {"env": {**os.environ, "PYTHONHASHSEED": "1"}},
        {"preexec_fn": os.getpid},
        {"process_group": 0},
        {"umask": 0o077},
        {"restore_signals": False},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_a_fork_would_not_do_is_started(options: dict[str, Any]):
    with program(Popen, "none", **options) as process:
        assert getattr(process, "_status", None) is None
        process.communicate("a line\n", timeout=60)
        assert process.returncode == 0
