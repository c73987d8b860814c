"""The shell commands of the README and of the command line's page work as they stand there, one after the other, in a
folder that has what a clone has: the applications and an environment."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps import flights_report
from apps.flights import MEAN_DELAYS, MeanDelay
from apps.flights_feed import NEW_YEAR_MS
from apps.flights_report import DAY_MS
from pystreams import TimeWindowedSerde, Windowed, open_log
from tests.docs.manual import DOCS, sections
from tests.docs.shell import Shell
from tests.docs.walk import file_of, walk
from tests.environment import without

ROOT = DOCS.parent
README = ROOT / "README.md"

#: What the README has its readers do, before they go on to other pages.
ACTIVATE = ". .venv/bin/activate"

#: What is not run, by how the commands begin, each with the reason.
EXCEPTIONS = {
    "make demo": "fills an environment from PyPI first; tests/live/test_flights.py runs what it runs",
    "make test": "is what runs this",
    "make package": "builds; tests/package builds, too, and installs what it has built",
    "pip install": "changes the environment that this runs in; tests/package installs into one of its own",
    "pystreams run apps.wordcount --bootstrap-servers": "needs a broker on port 9092; tests/kafka has its own",
}


@pytest.fixture
def cloned(tmp_path: Path) -> Path:
    """A folder with the applications and ``.venv``."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    shutil.copytree(ROOT / "apps", tmp_path / "apps", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.fixture
def shell(cloned: Path) -> Iterator[Shell]:
    """A terminal in it."""
    with Shell(cloned, {}, forking=True) as shell:
        yield shell


@pytest.mark.slow
def test_the_readmes_commands_work_as_they_stand(shell, tmp_path):
    walk(README, tmp_path, shell)


@pytest.mark.slow
def test_the_commands_of_the_command_lines_page_work_as_they_stand(shell, tmp_path):
    assert shell.run(ACTIVATE) == (0, "")
    walk(DOCS / "cli.md", tmp_path, shell)


def test_activating_the_environment_brings_the_command(cloned):
    assert ACTIVATE in [
        line for section in sections(README) for b in section.blocks for line in b.text.splitlines()
    ]
    with Shell(cloned, {}) as shell:
        assert shell.run("PATH=/usr/bin:/bin; command -v pystreams")[0] != 0
        assert shell.run(ACTIVATE) == (0, "")
        code, found = shell.run("command -v pystreams")
        assert code == 0
        assert Path(found.strip()).samefile(Path(sys.prefix) / "bin" / "pystreams")


def test_the_demo_ends_by_telling_how_to_activate_it(tmp_path, capsys, monkeypatch):
    without(monkeypatch, "PYSTREAMS_")
    file = tmp_path / "log.db"
    with open_log(file) as log:
        log.create_topic(MEAN_DELAYS)
        day = Windowed("F9", NEW_YEAR_MS, NEW_YEAR_MS + DAY_MS)
        result = MeanDelay("Frontier Airlines Inc.", 3, 20.5)
        log.produce(MEAN_DELAYS, day, result, key=TimeWindowedSerde(str, DAY_MS), value=MeanDelay)
    monkeypatch.setattr(sys, "argv", ["flights_report", "--embedded-log", str(file)])
    flights_report.main()
    _, report, end = re.split(r"(?=Latest out of|What to try next)", capsys.readouterr().out)
    assert "Frontier Airlines Inc." in report
    assert f"  {ACTIVATE}\n" in end


def test_whatever_is_not_run_has_its_reason():
    blocks = [
        block for page in (README, DOCS / "cli.md") for section in sections(page) for block in section.blocks
    ]
    left_out = [line for block in blocks if block.info == "bash no-run" for line in block.text.splitlines()]
    assert [line for line in left_out if not line.startswith(tuple(EXCEPTIONS))] == []
    assert [begin for begin in EXCEPTIONS if not any(line.startswith(begin) for line in left_out)] == []


def test_the_readmes_program_is_the_one_that_its_commands_run():
    (program,) = [block for section in sections(README) for block in section.blocks if file_of(block)]
    name, code = program.text.removeprefix("# ").split("\n", 1)
    assert (ROOT / name).read_text().endswith(code)
