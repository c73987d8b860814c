"""Help teaches, starts quickly, and both ways of starting are the same."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from pystreams.cli import versions
from pystreams.cli.main import command_for
from pystreams.distribution import __version__

COMMANDS = [
    [],
    ["init"],
    ["run"],
    ["doctor"],
    ["status"],
    ["lag"],
    ["threads"],
    ["get"],
    ["scan"],
    ["describe"],
    ["diff"],
    ["reset"],
    ["backfill"],
    ["verify"],
    ["snapshots"],
    ["monitoring"],
    ["monitoring", "dashboard"],
    ["monitoring", "alerts"],
    ["produce"],
    ["consume"],
    ["archive"],
    ["topics"],
    ["topics", "list"],
    ["topics", "describe"],
    ["topics", "create"],
    ["topics", "alter"],
    ["topics", "delete"],
    ["dlq"],
    ["dlq", "list"],
    ["dlq", "show"],
    ["dlq", "replay"],
]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cli.md"


def test_every_command_is_tested_here_and_is_on_the_page():
    commands = set(command_for([]).commands)
    assert {command[0] for command in COMMANDS if command} == commands
    assert set(re.findall(r"^\| `([a-z]+) ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)) == commands


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command) or "pystreams")
def test_every_command_has_help_without_markup_left_over(pystreams, command):
    shown = pystreams(*command, "--help")
    assert shown.code == 0
    assert "Usage:" in shown.out
    assert "[bold]" not in shown.out
    assert "[/]" not in shown.out


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c[0:1] not in ([], ["topics"]) and c != ["dlq"]], ids=" ".join
)
def test_every_command_teaches_by_example(pystreams, command):
    assert f"pystreams {' '.join(command)} " in pystreams(*command, "--help").out


def test_the_overview_lists_the_exit_codes(pystreams):
    assert "130 interrupted" in pystreams("--help").out


def test_the_version_stands_alone_on_the_first_line(pystreams):
    told = pystreams("--version")
    assert told.code == 0
    assert told.lines[0] == f"pystreams {__version__}"


def test_the_versions_of_what_is_used_follow(pystreams):
    lines = pystreams("--version").lines
    assert f"Python {platform.python_version()}, {platform.system()} {platform.machine()}" in lines
    assert f"rocksdict {version('rocksdict')} (stores)" in lines
    assert f"kafka-python {version('kafka-python')} (Kafka: groups)" in lines


def test_a_package_that_is_not_installed_is_said_to_be_so(pystreams, monkeypatch):
    def without_spark(package: str) -> str:
        if package == "pyspark":
            raise PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr(versions, "version", without_spark)
    assert "pyspark not installed (backfills)" in pystreams("--version").lines


def test_an_unknown_command_is_refused(pystreams):
    refused = pystreams("rum")
    assert refused.code == 2
    assert "run" in refused.err


def test_help_imports_neither_stores_nor_logs_nor_the_language():
    """What is heavy waits until a command needs it: help is there at once."""
    script = (
        "import sys\nfrom pystreams.cli.main import main\ntry: main(['--help'])\n"
        "except SystemExit: print('MODULES', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    imported = set(done.stdout.partition("MODULES")[2].split())
    assert not imported & {"rocksdict", "sqlite3", "confluent_kafka", "kafka", "pystreams.runtime.streams"}


def test_a_command_loads_no_other():
    script = (
        "import sys\nfrom pystreams.cli.main import main\ntry: main(['describe', '--help'])\n"
        "except SystemExit: print('MODULES', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    commands = "pystreams.cli.commands."
    imported = {name.removeprefix(commands) for name in done.stdout.split() if name.startswith(commands)}
    assert "describe" in imported
    assert not imported & {"run", "produce", "topics", "backfill.command", "status.command"}


def test_a_reader_that_goes_away_ends_the_command_quietly(pystreams, folder):
    pystreams("topics", "create", "t")
    pystreams("produce", "t", stdin="x" * 1000 + "\n" + ("y" * 1000 + "\n") * 2000)
    shell = f"{sys.executable} -m pystreams consume t | head -1 | wc -l; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["1", "1"]
    assert done.stderr == ""
