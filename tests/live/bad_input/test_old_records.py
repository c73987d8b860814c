"""Records older than the outputs keep: refused at start, and the commands of the refusal mend it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

WINDOWED = """
from pystreams import App, TimeWindows
app = App("old")
counts = app.stream("in", value=str).group_by(lambda line: line).windowed_by(TimeWindows.tumbling(60_000)).count(
    name="windows"
)
counts.to_stream(lambda window, count: window.key).to("out", key=str)
"""


def mend(pystreams: Any, refusal: str) -> list[str]:
    """Do what the message says; the settings that it asks for, as options."""
    for command in re.findall(r"pystreams (topics alter \S+ --config \S+?)(?=[;\s])", refusal):
        assert pystreams(*command.split()).code == 0, command
    settings = re.findall(r"set (\w+=\S+)", refusal)
    return [option for setting in settings for option in ("-s", setting)]


@pytest.fixture
def old(folder: Path, pystreams: Any) -> tuple[str, ...]:
    (folder / "old_program.py").write_text(WINDOWED, encoding="utf-8")
    pystreams("topics", "create", "in", "-c", "retention.ms=-1")
    pystreams("topics", "create", "out", "dead")
    pystreams("produce", "in", "--timestamp", "2013-01-01", stdin="x\nx\n")
    return ("run", "old_program", "--until-caught-up")


def test_the_commands_of_the_refusal_make_it_run(pystreams: Any, old: tuple[str, ...]) -> None:
    refused = pystreams(*old)
    assert refused.code == 4
    assert "Traceback" not in refused.err
    assert "out (retention.ms=" in refused.err
    assert "old-windows-changelog (retention.ms=" in refused.err
    options = mend(pystreams, refused.err)
    assert options
    ran = pystreams(*old, *options)
    assert ran.code == 0, ran.err
    assert pystreams("consume", "out").lines[-1].endswith("x\t2")


def test_an_existing_changelog_is_mended_by_a_command(pystreams: Any, old: tuple[str, ...]) -> None:
    assert pystreams(*old, "--allow-expired").code == 0
    pystreams("produce", "in", "--timestamp", "2013-01-02", stdin="y\n")
    refused = pystreams(*old)
    assert refused.code == 4
    options = mend(pystreams, refused.err)
    assert options == [], "the changelog exists: its own setting counts"
    ran = pystreams(*old, *options)
    assert ran.code == 0, ran.err


def test_a_dead_letter_topic_that_would_delete_them_is_warned_of_with_the_command_that_mends_it(
    pystreams: Any, old: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    assert pystreams("topics", "alter", "out", "-c", "retention.ms=-1").code == 0
    letters = (
        "-s",
        "errors_dead_letter_queue_topic_name=dead",
        "-s",
        "processing_exception_handler=dead_letter",
        "-s",
        "window_changelog_retention_ms=-1",
    )
    assert pystreams(*old, *letters).code == 0
    assert "dead (retention.ms=" in caplog.text
    mend(pystreams, caplog.text)
    caplog.clear()
    pystreams("produce", "in", "--timestamp", "2013-01-01", stdin="x\n")
    assert pystreams(*old, *letters).code == 0
    assert "dead (retention.ms=" not in caplog.text
