"""Ctrl-C while a command is still being imported ends it quietly, with the exit code of shells."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest

from tests.examples import chosen

#: What the console script does that pip writes.
SCRIPT = "import sys; from pystreams.__main__ import main; sys.exit(main())"

#: With an option of Python the program is not forked from one that has imported everything.
MODULE = ("-u", "-m", "pystreams")

COMMANDS = [("-c", SCRIPT), MODULE]

#: There is no such topic.
PROGRAM = """
from pystreams import App

app = App("waiting")
app.stream("nothing").to("nowhere")
"""

#: Sends the process SIGINT as soon as it imports the module AT, which may be in the middle of another import.
INTERRUPTING = """
import importlib.abc, os, signal, sys


class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == os.environ["AT"]:
            os.kill(os.getpid(), signal.SIGINT)


sys.meta_path.insert(0, Interrupting())
"""

#: In the order in which a command imports them.
MODULES = [
    "pystreams.cli",
    "pystreams.cli.main",
    "typer",
    "pystreams.errors",
    "pystreams.cli.commands.run",
    "pystreams.cli.application.loading",
    "waiting_program",
    "pystreams.app",
    "pystreams.dsl.stream",
]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "waiting_program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING, encoding="utf-8")
    root = Path(__file__).resolve().parents[2]
    return {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"}


def interrupted(at: str, environment: dict[str, str], folder: Path, *command: str) -> tuple[int, str, str]:
    """The exit code and the output of a command that is interrupted when it imports a module."""
    done = subprocess.run(
        [sys.executable, *command, "run", "waiting_program"],
        env={**environment, "AT": at},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "at"),
    # From the import of the command line on, both go the same way.
    chosen(
        product(COMMANDS, MODULES),
        lambda case: case[0] != MODULE or case[1] in {"pystreams.cli", "pystreams.cli.main", "pystreams.app"},
    ),
    ids=lambda value: value if isinstance(value, str) else "module" if value == MODULE else "script",
)
def test_it_ends_quietly(
    at: str, command: tuple[str, ...], environment: dict[str, str], tmp_path: Path
) -> None:
    assert interrupted(at, environment, tmp_path, *command) == (130, "", "")


@pytest.mark.parametrize("delay_s", [0.1, 0.2, 0.3, 0.4])
def test_whenever_it_comes_no_traceback_is_shown(
    delay_s: float, environment: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, *MODULE, "run", "waiting_program"]
    with subprocess.Popen(
        command, env={**environment, "AT": ""}, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    # On a busy machine Python itself may still be about to start.
    assert "Traceback" not in told or "pystreams" not in told


def test_who_has_sigint_ignored_is_not_interrupted(environment: dict[str, str], tmp_path: Path) -> None:
    """As shells do for what they run in the background."""
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {SCRIPT}"
    code, _, told = interrupted("typer", environment, tmp_path, "-c", ignoring)
    assert code == 4
    assert "Error: " in told
