"""``run --reload`` starts a changed program again, and waits where it cannot be loaded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.support import eventually

PROGRAM = """
from pystreams import App

def shown(count: int) -> str:
    return f"WORD {count}"

app = App("reloaded", commit_interval_ms=100)
orders = app.stream("in", key=str, value=str)
orders.group_by_key().count(name="counts").to_stream().map_values(shown).to("out", key=str, value=str)
"""
BROKEN = "from pystreams import App\napp = App(\n"


class Running:
    """``pystreams run --reload``, and what it has printed so far."""

    def __init__(self, folder: Path, name: str, *options: str) -> None:
        self._out, self._err = folder / "run.out", folder / "run.err"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pystreams", "run", name, "--reload", *options],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
                stdout=out,
                stderr=err,
            )

    @property
    def out(self) -> str:
        return self._out.read_text(encoding="utf-8")

    @property
    def err(self) -> str:
        return self._err.read_text(encoding="utf-8")

    def says(self, text: str, times: int = 1) -> None:
        """Wait until it has printed ``text``."""
        eventually(lambda: self.err.count(text) >= times or self._ended(), text)
        assert self.err.count(text) >= times, self.err

    def _ended(self) -> bool:
        return self.process.poll() is not None

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


Start = Callable[..., Running]


@pytest.fixture
def start(folder, pystreams) -> Iterator[Start]:
    pystreams("topics", "create", "in", "out")
    started: list[Running] = []

    def start(*options: str) -> Running:
        started.append(Running(folder, "reloaded_program", *options))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait(60)


@pytest.fixture
def save(folder) -> Callable[..., None]:
    """Writes the program. ``word`` is part of its results."""

    def save(word: str, more: str = "") -> None:
        (folder / "reloaded_program.py").write_text(PROGRAM.replace("WORD", word) + more, encoding="utf-8")

    return save


@pytest.fixture
def order(pystreams) -> Callable[[], None]:
    return lambda: pystreams("produce", "in", "--key-separator", "=", stdin="ann=order\n")


@pytest.fixture
def results(pystreams) -> Callable[[], list[str]]:
    return lambda: [line.split("\t")[-1] for line in pystreams("consume", "out").lines]


def test_a_changed_program_goes_on_with_the_state_and_what_becomes_of_it_is_shown(
    start, save, order, results
):
    save("before")
    running = start()
    order()
    eventually(lambda: results() == ["before 1"], "the first program's result")
    save("afterwards")
    running.says("The application starts again with the changed program.")
    assert "Changed: reloaded_program.py." in running.err
    assert "The topologies are equal" in running.err
    assert "Stopped, and all is committed" in eventually(lambda: "committed" in running.err and running.err)
    order()
    eventually(lambda: results() == ["before 1", "afterwards 2"], "the second program's result")
    save("afterwards", more='orders.group_by_key().count(name="more-counts")')
    running.says("The application starts again", times=2)
    assert "store\tmore-counts\t" in running.out
    running.says("The content of all stores and topics that the new version uses is kept")
    assert "Stop all members of the old version" not in running.err, "that is done here"
    order()
    eventually(lambda: results()[2:] == ["afterwards 3"], "the result of the program with the new store")
    assert running.stop() == 0, running.err


def test_ctrl_c_while_it_starts_again_ends_it(start, save, order, results):
    save("before")
    running = start()
    order()
    eventually(results, "a result")
    save("afterwards")
    running.says("The application starts again")
    # Python itself may just be starting.
    assert running.stop() in {0, 130, -signal.SIGINT}, running.err


def test_a_program_that_cannot_be_loaded_is_not_started_and_the_one_before_goes_on(
    folder, start, save, order, results
):
    save("before")
    running = start()
    order()
    eventually(lambda: results() == ["before 1"], "the first program's result")
    (folder / "reloaded_program.py").write_text(BROKEN, encoding="utf-8")
    running.says("The application goes on as it was; waiting for the next change.")
    assert "SyntaxError" in running.err
    assert "Traceback" not in running.err
    order()
    eventually(lambda: results() == ["before 1", "before 2"], "another result of the first program")
    save("mended")
    running.says("The application starts again")
    order()
    eventually(lambda: results()[2:] == ["mended 3"], "the mended program's result")
    assert running.stop() == 0, running.err


def test_a_change_that_would_lose_content_is_not_started_unless_the_loss_is_accepted(
    folder, start, save, order, results
):
    save("before")
    running = start()
    order()
    eventually(lambda: results() == ["before 1"], "the first program's result")
    lossy = PROGRAM.replace("WORD", "lossy").replace('name="counts"', 'name="totals"')
    (folder / "reloaded_program.py").write_text(lossy, encoding="utf-8")
    running.says(
        "The changed program would not start. The application goes on as it was; waiting for the next change."
    )
    assert "stored content would be lost: counts" in running.err
    assert "--accept-loss" in running.err
    order()
    eventually(lambda: results() == ["before 1", "before 2"], "another result of the first program")
    renamed = lossy.replace('name="totals"', 'name="totals", was="counts"').replace("lossy", "renamed")
    (folder / "reloaded_program.py").write_text(renamed, encoding="utf-8")
    running.says("The application starts again")
    order()
    eventually(lambda: results()[2:] == ["renamed 3"], "the result of the program that keeps the content")
    accepting = lossy.replace("totals", "sums").replace("_ms=100", '_ms=100, accept_loss="totals"')
    (folder / "reloaded_program.py").write_text(accepting, encoding="utf-8")
    running.says("The application starts again", times=2)
    order()
    eventually(lambda: results()[3:] == ["lossy 1"], "the result of the program that accepts the loss")
    assert running.stop() == 0, running.err


def test_a_program_that_is_broken_at_the_start_is_waited_for(folder, start, save, order, results):
    (folder / "reloaded_program.py").write_text(BROKEN, encoding="utf-8")
    running = start()
    running.says("Nothing runs. Waiting for a change of a Python file below")
    assert "SyntaxError" in running.err
    save("mended")
    order()
    eventually(lambda: results() == ["mended 1"], "the mended program's result")
    assert running.stop() == 0, running.err


def test_ctrl_c_while_nothing_runs_ends_with_the_code_of_the_error(folder, start):
    (folder / "reloaded_program.py").write_text(BROKEN, encoding="utf-8")
    running = start()
    running.says("Nothing runs.")
    assert running.stop() == 3, running.err


@pytest.mark.parametrize("option", [["--workers", "2"], ["--until-caught-up"]], ids=" ".join)
def test_options_that_do_not_go_with_it_are_refused(folder, pystreams, option):
    refused = pystreams("run", "reloaded_program", "--reload", *option)
    assert refused.code == 2
    assert "--reload" in refused.err
    assert option[0] in refused.err
    assert "leave" in refused.err
