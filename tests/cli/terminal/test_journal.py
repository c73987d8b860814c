"""Under systemd, each line on standard error says its level to the journal; elsewhere none does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.workers.workers_kit import ROOT
from tests.live.support import Log

PROGRAM = """
import logging

from pystreams import App

def check(value):
    if value == 0:
        logging.getLogger("program").error("the first line\\nthe second line")
        raise ValueError("a value of 0")
    return value

app = App("checking", processing_exception_handler="continue")
app.stream("in", key=str, value=int).map_values(check, value=int).to("out")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "checking.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / ".pystreams").mkdir()
    with closing(Log(tmp_path / ".pystreams")) as log:
        log.create("in", "out")
        log.write("in", [("a", 1, 1), ("a", 0, 2)])
    return tmp_path


def said(folder: Path, *arguments: str, is_journal: bool = True) -> list[str]:
    """What a command writes to standard error; ``is_journal``: systemd says that this is the journal."""
    reading, writing = os.pipe()
    status = os.fstat(writing)
    inode = status.st_ino if is_journal else status.st_ino + 1
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYSTREAMS_")}
    with os.fdopen(reading, encoding="utf-8") as lines:
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "pystreams", *arguments],
                cwd=folder,
                env=own
                | {
                    "JOURNAL_STREAM": f"{status.st_dev}:{inode}",
                    "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
                },
                stdout=subprocess.DEVNULL,
                stderr=writing,
            )
        finally:
            os.close(writing)
        found = lines.read().splitlines()
        process.wait()
    return found


def one(lines: list[str], text: str) -> str:
    (found,) = [line for line in lines if text in line]
    return found


def test_each_line_has_the_priority_of_its_level(folder):
    lines = said(folder, "run", "checking", "--until-caught-up", "--verbose")
    assert one(lines, "a record was skipped").startswith("<4>")
    assert re.match(r"<3>\d{4}-.* ERROR program: the first line$", one(lines, "the first line"))
    assert one(lines, "the second line") == "<3>the second line"
    assert one(lines, "REBALANCING -> RUNNING").startswith("<6>")
    # A record was left out, so the last line is a warning.
    assert one(lines, "all is committed").startswith("<4>Stopped")
    assert [line for line in lines if not re.match(r"<[3-7]>", line)] == []


def test_json_has_it_too(folder):
    lines = said(folder, "run", "checking", "--until-caught-up", "--log-format", "json")
    assert one(lines, "a record was skipped").startswith('<4>{"time": ')


def test_lines_of_workers_have_it_before_the_number_of_the_worker(folder):
    lines = said(folder, "run", "checking", "--until-caught-up", "--workers", "1", "--verbose")
    assert one(lines, "a record was skipped").startswith("<4>worker 1 | ")
    assert re.match(r"<3>worker 1 \| \d{4}-.* ERROR program: the first line$", one(lines, "the first line"))
    assert one(lines, "the second line") == "<3>worker 1 | the second line"
    assert one(lines, "REBALANCING -> RUNNING").startswith("<6>worker 1 | ")
    assert [line for line in lines if not re.match(r"<[3-7]>", line)] == []


def test_lines_of_workers_have_it_in_json_too(folder):
    lines = said(folder, "run", "checking", "--until-caught-up", "--workers", "1", "--log-format", "json")
    assert re.match(r'<4>\{"time": .*"worker": 1[,}]', one(lines, "a record was skipped"))


def test_each_line_of_an_error_has_it(folder):
    lines = said(folder, "run", "nothing")
    assert lines[0].startswith("<3>Error: ")
    assert len(lines) > 1
    assert all(line.startswith("<3>") for line in lines)


@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["alone", "worker"])
def test_a_pipe_that_is_not_the_journal_gets_no_priorities(folder, workers):
    lines = said(folder, "run", "checking", "--until-caught-up", *workers, is_journal=False)
    assert one(lines, "a record was skipped")
    assert [line for line in lines if line.startswith("<")] == []
