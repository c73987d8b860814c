"""A reset application processes its input anew."""

from __future__ import annotations

import pytest

PROGRAM = """
from pystreams import App

app = App("counter")
app.stream("in", value=str).group_by(lambda word: word).count(name="counts").to_stream().to("out")
"""


@pytest.fixture
def application(folder, pystreams):
    (folder / "counter_program.py").write_text(PROGRAM, encoding="utf-8")
    pystreams("topics", "create", "in", "out")
    pystreams("produce", "in", stdin="a\na\nb\n")
    assert pystreams("run", "counter_program.py", "--until-caught-up").code == 0
    return "counter_program.py"


def emitted(pystreams) -> list[tuple[str, str]]:
    """All results in order; how many there are of a key depends on when commits happened."""
    rows = [line.split("\t") for line in pystreams("consume", "out").lines]
    return [(key, value) for _, key, value in rows]


def test_after_a_reset_everything_is_counted_anew_from_zero(pystreams, application):
    before = emitted(pystreams)
    assert dict(before) == {"a": "2", "b": "1"}
    done = pystreams("reset", application, "--yes")
    assert done.code == 0
    assert "will process its input again" in done.err
    assert pystreams("run", application, "--until-caught-up").code == 0
    anew = emitted(pystreams)[len(before) :]
    assert dict(anew) == {"a": "2", "b": "1"}


def test_a_dry_run_shows_what_would_be_done_and_does_nothing(pystreams, application, folder):
    before = pystreams("topics", "list", "--internal").out
    shown = pystreams("reset", application, "--dry-run")
    assert shown.code == 0
    assert "topic\tcounter-counts-changelog\texists\tdeleted" in shown.lines
    assert "offset\tin-0\t3\t0" in shown.lines
    assert any(line.startswith("state\t") for line in shown.lines)
    assert pystreams("topics", "list", "--internal").out == before
    assert (folder / ".pystreams" / "state" / "counter").exists()


def test_a_reset_asks_first(pystreams, application):
    assert pystreams("reset", application, stdin="n\n").code == 1
    assert "counter-counts-changelog" in pystreams("topics", "list", "--internal").out


def test_a_second_reset_has_nothing_to_do(pystreams, application):
    pystreams("reset", application, "--yes")
    assert "Nothing to reset" in pystreams("reset", application, "--yes").err


def test_resetting_to_the_end_skips_what_is_there(pystreams, application):
    before = emitted(pystreams)
    pystreams("reset", application, "--yes", "--to", "latest")
    pystreams("produce", "in", stdin="c\n")
    pystreams("run", application, "--until-caught-up")
    assert emitted(pystreams)[len(before) :] == [("c", "1")]


def test_a_running_application_is_not_reset(pystreams, application, folder):
    from pystreams import Streams
    from pystreams.cli.application.loading import load_application
    from pystreams.clock import SystemClock
    from pystreams.runtime.client_state import ClientState

    streams = Streams(load_application(application), clock=SystemClock())
    streams.start()
    try:
        assert streams.wait_for(lambda: streams.state is ClientState.RUNNING, 30_000)
        refused = pystreams("reset", application, "--yes")
    finally:
        streams.close()
    assert refused.code == 4
    assert "counter is running" in refused.err
