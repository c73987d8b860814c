"""A scheduler that runs a backfill finds its report at the end of the output, and can end it at any time."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.backfill.backfill_kit import HERE, wordcount
from tests.cli.wordcount_kit import WORDCOUNT
from tests.examples import chosen
from tests.live.support import eventually

__all__ = ["wordcount"]

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pystreams", *arguments]


def test_the_report_is_the_last_line_where_messages_go_to_the_same_pipe(folder, wordcount):
    done = subprocess.run(
        command("backfill", wordcount, "--json", "--staging", "night", "--hand-over", "embedded", *HERE),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        timeout=120,
    )
    *messages, report = done.stdout.splitlines()
    assert messages[-1].startswith("Handed over to embedded log")
    assert json.loads(report)["staging"] == "night"


def test_the_report_names_the_backfill_that_is_continued(pystreams, wordcount):
    first = pystreams("backfill", wordcount, "--json", "--staging", "monday", *HERE)
    second = pystreams("backfill", wordcount, "--json", "--staging", "tuesday", "--previous", "monday", *HERE)
    assert json.loads(first.out)["previous_id"] is None
    assert json.loads(second.out)["previous_id"] == json.loads(first.out)["backfill_id"]


def stuck(folder: Path, name: str) -> None:
    """Put a program into the folder that stops at its first record."""
    waits = "import threading\n\ndef stuck(line):\n    threading.Event().wait()\n"
    program = waits + WORDCOUNT.format(id="wordcount").replace("str.split", "stuck")
    (folder / f"{name}.py").write_text(program, encoding="utf-8")


def working(*arguments: str) -> subprocess.Popen[str]:
    """A backfill that has begun its first slice, in a process group of its own."""
    running = subprocess.Popen(
        command(*arguments), env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("slice 1 of 2"):
            return running
    raise AssertionError(f"it ended with {running.wait()}")


@pytest.mark.parametrize(
    ("master", "number", "code"),
    chosen(
        [
            (master, number, 128 + number)
            for master in ("none", "processes[2]")
            for number in (signal.SIGTERM, signal.SIGHUP)
        ],
        # What the signal is makes no difference to what ends.
        lambda case: (case[0] == "none") == (case[1] == signal.SIGHUP),
    ),
)
def test_a_signal_ends_it_with_a_message_and_leaves_no_temporary_files(
    folder, wordcount, master, number, code
):
    stuck(folder, wordcount)
    with working("backfill", wordcount, "--staging", "night", "--master", master) as running:
        running.send_signal(number)
        assert running.stderr is not None
        rest = running.stderr.read()
    assert running.returncode == code
    assert "Stopped. Finished slices stay in night: continue with --resume." in rest
    assert "Traceback" not in rest
    assert not list(Path("night").rglob("rocksdb"))
    eventually(lambda: not group_lives(running.pid), "the workers end with it")


@pytest.mark.parametrize("master", ["processes[2]", "local[2]"])
def test_a_signal_for_all_of_its_processes_ends_it_in_the_same_way(folder, wordcount, master):
    """As Airflow sends it: workers and Spark's JVM may end first."""
    if master.startswith("local") and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    stuck(folder, wordcount)
    with working("backfill", wordcount, "--staging", "night", "--master", master) as running:
        os.killpg(running.pid, signal.SIGTERM)
        assert running.stderr is not None
        rest = running.stderr.read()
    assert running.returncode == 143
    assert "Stopped. Finished slices stay in night: continue with --resume." in rest
    assert "Traceback" not in rest
    eventually(lambda: not group_lives(running.pid), "all of its processes end")


def test_the_same_command_finishes_what_a_signal_has_ended(folder, pystreams, wordcount):
    program = (folder / f"{wordcount}.py").read_text(encoding="utf-8")
    stuck(folder, wordcount)
    night = ("backfill", wordcount, "--staging", "night", "--resume", *HERE)
    with working(*night) as running:
        running.terminate()
        assert running.stderr is not None
        running.stderr.read()
    (folder / f"{wordcount}.py").write_text(program, encoding="utf-8")
    done = pystreams(*night)
    assert done.code == 0, done.err
    assert re.search(r"^Continuing the backfill in night, whose cut is ", done.err, re.MULTILINE)


def test_a_signal_that_is_ignored_does_not_end_it(folder, wordcount):
    """As below ``nohup``."""
    seen = "import os, signal\n\ndef split(line):\n    os.kill(os.getpid(), signal.SIGHUP)\n    return line.split()\n"
    program = seen + WORDCOUNT.format(id="wordcount").replace("str.split", "split")
    (folder / f"{wordcount}.py").write_text(program, encoding="utf-8")
    # What is ignored is handed down.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        done = subprocess.run(
            command("backfill", wordcount, *HERE), env=ENVIRONMENT, check=False, timeout=120
        )
    finally:
        signal.signal(signal.SIGHUP, before)
    assert done.returncode == 0


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
