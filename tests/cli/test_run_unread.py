"""Nobody has to read what ``run`` prints: it works on when its log's reader is gone, and stops with its terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.workers.test_workers import WORDCOUNT, counted, log, write_lines
from tests.cli.workers.workers_kit import ROOT
from tests.linux import children
from tests.live.support import Log, eventually

__all__ = ["log"]

ALONE_AND_WORKERS = pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["alone", "workers"])

Begin = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def begin(folder: Path) -> Iterator[Begin]:
    processes: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-m", "pystreams", "run", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            **options,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


class Terminal:
    """A terminal of its own, and all that was ever written to it."""

    def __init__(self) -> None:
        self._master, self.slave = pty.openpty()
        self.text = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while arrived := os.read(self._master, 65_536):
                self.text += arrived.decode(errors="replace")
        except OSError:
            return  # every process has closed it

    def given_to(self, begin: Begin, *arguments: str) -> subprocess.Popen[bytes]:
        """A process that has it as its controlling terminal."""
        process = begin(
            *arguments,
            stdout=subprocess.PIPE,
            stderr=self.slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(2, termios.TIOCSCTTY, 0),
        )
        os.close(self.slave)
        return process

    def close(self) -> None:
        """As whoever closes its window."""
        os.close(self._master)


@ALONE_AND_WORKERS
def test_work_goes_on_when_the_reader_of_its_log_is_gone(log: Log, begin: Begin, workers: list[str]):
    reading, writing = os.pipe()
    process = begin("words", *workers, stdout=writing, stderr=writing)
    os.close(writing)
    with os.fdopen(reading) as lines:
        assert any(line.startswith("running") for line in lines)
    write_lines(log, 500)
    eventually(lambda: counted(log) == 500)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(3)  # every two seconds a line is due
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert log.admin.group_members("wordcount") == []


@ALONE_AND_WORKERS
def test_it_commits_and_stops_when_its_terminal_is_closed(log: Log, begin: Begin, workers: list[str]):
    terminal = Terminal()
    process = terminal.given_to(begin, "words", *workers)
    write_lines(log, 500)
    eventually(lambda: counted(log) == 500)
    started = children(process.pid)
    terminal.close()
    assert process.wait(30) == 0
    assert log.admin.group_members("wordcount") == []
    assert not set(started) & set(children(1))


@ALONE_AND_WORKERS
def test_nohup_lets_it_work_on(log: Log, begin: Begin, workers: list[str]):
    # What is ignored is handed down.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = begin("words", *workers, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finally:
        signal.signal(signal.SIGHUP, before)
    write_lines(log, 500)
    eventually(lambda: counted(log) == 500)
    process.send_signal(signal.SIGHUP)
    write_lines(log, 500, first=500)
    eventually(lambda: counted(log) == 1_000)
    process.terminate()
    assert process.wait(30) == 0


def test_on_a_terminal_notes_stand_above_the_table_and_results_are_not_in_it(
    log: Log, folder: Path, begin: Begin
):
    (folder / "talking.py").write_text(WORDCOUNT + "\nprint('a result')\n", encoding="utf-8")
    terminal = Terminal()
    process = terminal.given_to(begin, "talking", "--workers", "2")
    eventually(lambda: terminal.text.count(" running ") >= 2, "both run")
    victim = min(children(process.pid))
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: "it starts again in" in terminal.text)
    painted_below = re.compile(r"it starts again in [\d.]+ s\s+worker +process +state")
    eventually(lambda: painted_below.search(re.sub(r"\x1b\[[0-9;]*m", "", terminal.text)), terminal.text)
    process.send_signal(signal.SIGINT)
    results = process.communicate(timeout=30)[0].decode()
    assert process.returncode == 0
    assert set(results.splitlines()) == {"a result"}
    assert "a result" not in terminal.text
    terminal.close()
