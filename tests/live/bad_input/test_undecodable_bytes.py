"""Bytes that are not what the serde reads: the application stops at them, leaves them out, or moves them away."""

from __future__ import annotations

import pytest

from pystreams.app import App
from pystreams.errors import SerializationError
from pystreams.ids import TopicPartition
from pystreams.serde import Serde
from tests.live.bad_input.kit import copies, dead_letters, failure_of, told
from tests.live.support import Log, caught_up, run_to_the_end

BAD = b"\x00\x01\x02"
DEAD = {"errors_dead_letter_queue_topic_name": "dead"}


@pytest.fixture(autouse=True)
def five_records_of_which_the_third_is_bad(log: Log) -> None:
    log.create("in", "out", "dead")
    log.write("in", [("k", 1, 1), ("k", 2, 2)])
    log.write("in", [("k", BAD, 3)], value=bytes)
    log.write("in", [("k", 4, 4), ("k", 5, 5)])


def values(log: Log) -> list[int]:
    return [record.value for record in log.read("out")]


def counted(log: Log) -> int:
    return log.table("copies-counts-changelog")["k"]


def test_by_default_the_application_stops_and_says_at_which_record(log: Log) -> None:
    failure = failure_of(log, copies(log))
    assert isinstance(failure, SerializationError)
    assert "a record of topic in cannot be deserialized" in failure.what
    for place in ("task 0_0", "KSTREAM-SOURCE-0000000000", "in-0 offset 2"):
        assert place in failure.where
    assert "value" in failure.why
    assert "deserialization_exception_handler" in failure.hint


def test_after_a_stop_the_same_application_stops_at_the_same_record_again(log: Log) -> None:
    for _ in range(3):
        assert "in-0 offset 2" in failure_of(log, copies(log)).where
    assert values(log) in ([], [1], [1, 2]), "what was committed before the stop is there once"


@pytest.mark.parametrize("commit_interval_ms", [0, 600_000])
def test_after_a_stop_the_handler_continue_goes_on_at_the_bad_record(
    log: Log, commit_interval_ms: int
) -> None:
    failure_of(log, copies(log, commit_interval_ms=commit_interval_ms))
    run_to_the_end(log, copies(log, deserialization_exception_handler="continue"))
    assert values(log) == [1, 2, 4, 5]
    assert counted(log) == 4


def test_after_a_stop_the_mended_serde_reads_everything(log: Log) -> None:
    failure_of(log, copies(log))
    mended = log.app("copies")
    numbers = mended.stream("in", key=str, value=bytes).map_values(
        lambda raw: int.from_bytes(raw) if len(raw) == 8 else -1
    )
    numbers.to("out", value=int)
    numbers.group_by_key(value=int).count(name="counts")
    run_to_the_end(log, mended)
    assert values(log) == [1, 2, -1, 4, 5]


def test_continue_leaves_it_out_and_counts_it(log: Log) -> None:
    streams = log.start(copies(log, deserialization_exception_handler="continue"))
    caught_up(streams)
    assert values(log) == [1, 2, 4, 5]
    assert streams.metrics.total("dropped-records-total") == 1


def test_dead_letter_moves_it_as_it_came_and_says_why(log: Log) -> None:
    run_to_the_end(log, copies(log, deserialization_exception_handler="dead_letter", **DEAD))
    assert values(log) == [1, 2, 4, 5]
    (letter,) = dead_letters(log)
    assert letter[:3] == (b"k", BAD, 3)
    headers = told(letter)
    assert (headers["topic"], headers["partition"], headers["offset"]) == ("in", "0", "2")
    assert headers["exception"] == "pystreams.errors.SerializationError"
    assert "8 bytes" in headers["message"]
    assert "Traceback" in headers["stacktrace"]
    assert headers["step"].startswith("KSTREAM-SOURCE-")
    assert set(headers) == {"exception", "message", "stacktrace", "topic", "partition", "offset", "step"}


def test_a_key_that_cannot_be_read_is_a_bad_record_too(log: Log) -> None:
    log.write("in", [(b"\xff\xfe", (9).to_bytes(8), 9)], key=bytes, value=bytes)
    run_to_the_end(log, copies(log, deserialization_exception_handler="dead_letter", **DEAD))
    assert [letter.key for letter in dead_letters(log)] == [b"k", b"\xff\xfe"]
    assert values(log) == [1, 2, 4, 5]


def test_a_batch_of_nothing_but_bad_records_is_passed(log: Log) -> None:
    log.write("in", [("k", BAD, i) for i in range(50)], value=bytes)
    run_to_the_end(log, copies(log, deserialization_exception_handler="continue"))
    assert log.committed("copies")[TopicPartition("in", 0)].offset == 55
    log.write("in", [("k", 6, 6)])
    run_to_the_end(log, copies(log, deserialization_exception_handler="continue"))
    assert values(log) == [1, 2, 4, 5, 6]


def test_a_serde_of_ones_own_that_raises_is_asked_about_like_any_other(log: Log) -> None:
    def read(data: bytes) -> int:
        if len(data) != 8:
            raise KeyError("no such thing")
        return int.from_bytes(data)

    def app(**settings: object) -> App:
        app = log.app("own", **settings)
        app.stream("in", key=str, value=Serde.of(lambda value: value.to_bytes(8), read)).to("out", value=int)
        return app

    failure = failure_of(log, app())
    assert "KeyError" in failure.what
    assert isinstance(failure.__cause__, KeyError)
    run_to_the_end(log, app(deserialization_exception_handler="continue"))
    assert values(log) == [1, 2, 4, 5]


PROGRAM = """
from pystreams import App
app = App("numbers")
app.stream("numbers", key=str, value=int).to("results")
"""


def test_on_the_command_line_the_stop_and_the_way_out_are_named(folder, pystreams) -> None:
    (folder / "numbers_program.py").write_text(PROGRAM, encoding="utf-8")
    pystreams("topics", "create", "numbers", "results")
    pystreams("produce", "numbers", "--value-type", "int", stdin="1\n")
    pystreams("produce", "numbers", stdin="one\n")
    pystreams("produce", "numbers", "--value-type", "int", stdin="3\n")
    failed = pystreams("run", "numbers_program", "--until-caught-up")
    assert failed.code == 1
    assert "numbers-0 offset 1" in failed.err
    assert "Traceback" not in failed.err
    setting = "deserialization_exception_handler"
    assert setting in failed.err
    assert pystreams("run", "numbers_program", "--until-caught-up", "-s", f"{setting}=continue").code == 0
    rows = [line.split("\t") for line in pystreams("consume", "results").lines]
    assert [row[2] for row in rows] == ["1", "3"]
