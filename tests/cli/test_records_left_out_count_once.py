"""A record that is left out twice, because the work since the last commit was done again, counts once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.conftest import Command, Outcome

#: Skips what is no number, moves ``skip`` to the dead-letter topic, requests a commit for ``commit``, and ends with an
#: error at ``fail``, until a file ``mended`` is there. The first ``away`` undoes the work since the last commit.
PROGRAM = """
from pathlib import Path

from pystreams import App, Processor
from pystreams.errors import BrokerUnavailableError
from pystreams.handlers import Response

app = App(
    "careful",
    deserialization_exception_handler="continue",
    processing_exception_handler=lambda context: handle(context.exception),
    errors_dead_letter_queue_topic_name="dead",
)
been_away = []


def handle(error):
    return Response.FAIL if "fail" in str(error) else Response.DEAD_LETTER


class Step(Processor):
    def process(self, record):
        if record.key == "commit":
            self.context.commit()
        elif record.key == "away" and not been_away:
            been_away.append(True)
            raise BrokerUnavailableError("the broker is away")
        elif record.key == "move" or (record.key == "fail" and not Path("mended").exists()):
            raise ValueError(record.key)


app.stream("in", key=str, value=int).process(Step)
"""

Run = Callable[..., Outcome]


@pytest.fixture
def run(folder, pystreams: Command) -> Run:
    """Runs the program on records with these keys; ``bad`` is one that cannot be read."""
    pystreams("topics", "create", "in", "dead")
    (folder / "careful.py").write_text(PROGRAM, encoding="utf-8")

    def run(*keys: str) -> Outcome:
        for key in keys:
            value_type = ("--value-type", "int") if key != "bad" else ()
            pystreams("produce", "in", "--key-separator", "=", *value_type, stdin=f"{key}=1\n")
        return pystreams("run", "careful", "--until-caught-up")

    return run


def test_what_is_done_again_after_a_failure_counts_once(run: Run):
    ran = run("bad", "commit", "move", "bad", "away", "bad")
    assert ran.code == 0
    last = ran.err.splitlines()[-1]
    assert "left out: 1 moved to the dead-letter topic dead, 3 skipped." in last


def test_a_run_that_fails_counts_what_it_has_committed_and_the_next_run_the_rest(run: Run, folder):
    failed = run("bad", "commit", "move", "move", "fail")
    assert failed.code == 1
    assert "; left out: 1 skipped." in failed.err
    (folder / "mended").touch()
    assert "left out: 2 moved to the dead-letter topic dead." in run().err.splitlines()[-1]
