"""A value of 20 MB: written and read like any other where the topics allow it, else refused with the limit's name."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest

from pystreams.app import App
from pystreams.errors import ProductionError
from tests.live.bad_input.kit import dead_letters, failure_of
from tests.live.support import KEPT, Log, caught_up, run_to_the_end

MEGABYTE = 1_000_000
LARGE = bytes(range(250)) * (20 * MEGABYTE // 250)
WIDE = {**KEPT, "max.message.bytes": str(25 * MEGABYTE)}


@pytest.fixture
def wide_topics(log: Log) -> None:
    log.create("in", "out", config=WIDE)
    log.write("in", [("small", b"1", 1), ("large", LARGE, 2), ("small", b"2", 3)], value=bytes)


def storing(log: Log, **settings: Any) -> App:
    """Keeps the last value of every key, and copies it to topic out."""
    app = log.app("storing", **settings)
    last = app.stream("in", key=str, value=bytes).group_by_key().reduce(lambda one, two: two, name="last")
    last.to_stream().to("out")
    return app


def test_it_passes_through_an_application(log: Log, wide_topics: None) -> None:
    app = log.app("copy")
    app.stream("in", key=str, value=bytes).to("out")
    run_to_the_end(log, app)
    assert [r.value for r in log.read("out", value=bytes)] == [b"1", LARGE, b"2"]


def test_it_is_kept_in_a_store_and_comes_back_from_the_changelog(log: Log, wide_topics: None) -> None:
    settings = {"topic_config": {"max.message.bytes": 25 * MEGABYTE}}
    run_to_the_end(log, storing(log, **settings))
    assert log.table("out", value=bytes) == {"small": b"2", "large": LARGE}
    shutil.rmtree(log.path / "state")
    log.write("in", [("small", b"3", 4)], value=bytes)
    streams = log.start(storing(log, **settings))
    caught_up(streams)
    assert streams.store("last").get("large").value == LARGE


def test_a_changelog_with_the_usual_limit_refuses_it_and_names_topic_record_and_setting(
    log: Log, wide_topics: None
) -> None:
    failure = failure_of(log, storing(log))
    assert isinstance(failure, ProductionError)
    assert "20,000,0" in failure.what
    assert "max.message.bytes" in failure.why
    for place in ("task 0_0", "KSTREAM-REDUCE", "in-0 offset 1", "storing-last-changelog-0"):
        assert place in failure.where
    assert "pystreams topics alter storing-last-changelog" in failure.hint
    size = re.search(r"max\.message\.bytes=(\d+)", failure.hint)
    assert size
    log.admin.alter_topic_config("storing-last-changelog", {"max.message.bytes": size[1]})
    run_to_the_end(log, storing(log))
    assert log.table("out", value=bytes) == {"small": b"2", "large": LARGE}
    assert log.table("storing-last-changelog", value=bytes) == {"small": b"2", "large": LARGE}


@pytest.mark.parametrize("handler", ["continue", "dead_letter"])
def test_an_output_that_refuses_it_is_a_matter_of_the_production_handler(log: Log, handler: str) -> None:
    log.create("in", "dead", config=WIDE)
    log.create("out")
    log.write("in", [("k", b"1", 1), ("k", LARGE, 2), ("k", b"2", 3)], value=bytes)

    def app(**settings: Any) -> App:
        app = log.app("copy", **settings)
        app.stream("in", key=str, value=bytes).to("out")
        return app

    failure = failure_of(log, app())
    for place in ("task 0_0", "KSTREAM-SINK-0000000001", "in-0 offset 1", "out-0"):
        assert place in failure.where
    assert "production_exception_handler" in failure.hint
    run_to_the_end(log, app(production_exception_handler=handler, errors_dead_letter_queue_topic_name="dead"))
    assert [r.value for r in log.read("out", value=bytes)] == [b"1", b"2"]
    letters = dead_letters(log)
    assert [letter.value for letter in letters] == ([LARGE] if handler == "dead_letter" else [])


def test_a_dead_letter_that_does_not_fit_stops_the_application(log: Log) -> None:
    log.create("in", config=WIDE)
    log.create("out", "dead")
    log.write("in", [("k", LARGE, 2)], value=bytes)
    app = log.app(
        "copy",
        deserialization_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead",
    )
    app.stream("in", key=str, value=int).to("out")
    failure = failure_of(log, app)
    assert "a dead letter of task 0_0" in failure.where
    assert "in-0 offset 0" in failure.where
    assert "pystreams topics alter dead" in failure.hint


def test_the_command_line_refuses_it_with_the_command_that_lets_it_in(folder, pystreams) -> None:
    pystreams("topics", "create", "large")
    line = "x" * (20 * MEGABYTE)
    refused = pystreams("produce", "large", stdin=f"small\n{line}\nafter\n")
    assert refused.code == 1
    assert "Traceback" not in refused.err
    assert "line 2" in refused.err
    command = re.search(r"pystreams (topics alter large \S+ max\.message\.bytes=\d+)", refused.err)
    assert command, refused.err
    assert pystreams("consume", "large", "--value-type", "str").out.split("\t")[-1] == "small\n"
    assert pystreams(*command[1].split()).code == 0
    assert pystreams("produce", "large", stdin=f"{line}\n").code == 0
    assert f"\t{line}\n" in pystreams("consume", "large", "--value-type", "str").out
