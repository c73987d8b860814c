"""``pystreams threads`` shows what each thread is at, also of one that hangs in the middle of a record."""

from __future__ import annotations

import json
import os
import subprocess
from types import SimpleNamespace

import pytest

from pystreams.cli.commands.status.instances import Instances
from pystreams.cli.commands.status.threads import silent_notes
from pystreams.serving.threads import ClientThreads, ThreadNow
from tests.cli.test_status import run_in_the_background, watching
from tests.live.support import eventually

#: Hangs in a record that says so until the file ``go`` is there.
PROGRAM = """
import time
from pathlib import Path

from pystreams import App


def wait(line):
    while line == "hang" and not Path("go").exists():
        time.sleep(0.01)


app = App("waiting")
app.stream("lines", value=str).peek(wait).group_by(lambda line: line).count(name="counts")
"""


@pytest.fixture
def program(folder, pystreams):
    """A program with its topic."""
    name = f"waiting_{os.urandom(4).hex()}"
    (folder / f"{name}.py").write_text(PROGRAM, encoding="utf-8")
    pystreams("topics", "create", "lines")
    return name


def threads(pystreams, program, *arguments):
    """What the JSON of ``threads`` says of the threads."""
    (line,) = pystreams("threads", program, "--json", *arguments).lines
    return json.loads(line)["threads"]


def of_all(pystreams, program, count):
    """The same, once so many threads have tasks and say what they are at; None before."""
    found = threads(pystreams, program)
    at_work = [one for one in found if one["now"] and one["now"]["state"] == "running" and one["tasks"]]
    return found if len(at_work) == count else None


def test_a_thread_that_hangs_in_a_record_is_shown_with_its_task_and_when_it_last_polled(
    folder, pystreams, program
):
    with run_in_the_background(program, "--http", "0"):
        pystreams("produce", "lines", stdin="quick\n")
        (one,) = eventually(
            lambda: (seen := of_all(pystreams, program, 1)) and seen[0]["now"]["committed_ms"] and seen
        )
        assert one["tasks"] == ["0_0", "1_0"]
        assert one["now"]["tasks"] == [{"task": task, "state": "running"} for task in one["tasks"]]
        pystreams("produce", "lines", stdin="hang\n")
        # A round takes a fraction of a second when all is well.
        hangs = eventually(lambda: (now := threads(pystreams, program)[0]["now"])["part_ms"] > 1_500 and now)
        assert (hangs["part"], hangs["task"]) == ("process", "0_0")
        assert hangs["polled_ms"] > 1_500
        shown = pystreams("threads", program)
        (row,) = [line.split("\t") for line in shown.lines]
        assert row[0].startswith("waiting-")
        assert row[1:4] == ["running", "0_0 1_0", "-"]
        assert row[4].startswith("processes 0_0 for ")
        assert row[5].endswith(" ago")
        (folder / "go").touch()
        eventually(lambda: threads(pystreams, program)[0]["now"]["part"] != "process")


def test_all_workers_are_shown(pystreams, program):
    with run_in_the_background(program, "--http", "0", "--workers", "2"):
        found = eventually(lambda: of_all(pystreams, program, 2))
        assert sorted(task for one in found for task in one["tasks"]) == ["0_0", "1_0"]
        assert len({one["thread"] for one in found}) == 2


def test_of_an_instance_without_http_the_tasks_are_shown_as_soon_as_it_has_them_and_what_to_do(
    pystreams, program
):
    def watched():
        return json.loads(watch.stdout.readline())["threads"]

    with watching("threads", program, "--json", stdout=subprocess.PIPE) as watch:
        assert watched() == []
        with run_in_the_background(program):
            eventually(lambda: (seen := watched()) and seen[0]["tasks"])
            shown = pystreams("threads", program)
    (row,) = [line.split("\t") for line in shown.lines]
    assert row[1:] == ["?", "0_0 1_0", "-", "?", "?", "?"]
    assert "run them with --http" in shown.err


def test_an_application_that_does_not_run_says_so(pystreams, program):
    shown = pystreams("threads", program)
    assert (shown.code, shown.out) == (0, "")
    assert "does not run" in shown.err


@pytest.mark.parametrize("names, is_noted", [(["a", "b"], True), (["a"], False)])
def test_the_sign_for_a_thread_that_nobody_has_said_anything_of_is_explained(names, is_noted):
    now = ThreadNow("a", "running", [], [], [], "poll", 0, None, None, None)
    look = SimpleNamespace(
        instances=Instances([ClientThreads("client", 0, [now])]),
        status=SimpleNamespace(members=[SimpleNamespace(thread=name) for name in names]),
    )
    note = "A process whose threads have ? does not answer now, or runs without --http."
    assert list(silent_notes(look)) == ([note] if is_noted else [])
