"""A value that its serde cannot write: the production handler decides at a sink, the processing handler at a store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pystreams.app import App
from pystreams.errors import ProcessingError, ProductionError
from pystreams.serde import Serde
from tests.live.bad_input.kit import dead_letters, failure_of, told
from tests.live.support import Log, run_to_the_end


def write(value: int) -> bytes:
    if value == 3:
        raise LookupError("no word for three")
    return str(value).encode()


WORDS = Serde.of(write, int)
DEAD = {"errors_dead_letter_queue_topic_name": "dead"}


@pytest.fixture(autouse=True)
def five(log: Log) -> None:
    log.create("in", "out", "dead")
    log.write("in", [("k", i, i) for i in (1, 2, 3, 4, 5)])


def sink(log: Log, **settings: Any) -> App:
    app = log.app("words", **settings)
    app.stream("in", key=str, value=int).to("out", value=WORDS)
    return app


def repartition(log: Log, **settings: Any) -> App:
    app = log.app("words", **settings)
    app.stream("in", key=str, value=int).repartition(value=WORDS, name="words").to("out", value=int)
    return app


def store(log: Log, **settings: Any) -> App:
    app = log.app("words", **settings)
    values = (
        app.stream("in", key=str, value=int)
        .group_by_key()
        .reduce(lambda one, two: two, name="last", value=WORDS, cached=False)
    )
    values.to_stream().to("out", value=int)
    return app


def written(log: Log) -> list[Any]:
    return [record.value for record in log.read("out", value=bytes)]


@pytest.mark.parametrize("build", [sink, repartition])
def test_at_a_sink_step_topic_and_record_are_named(log: Log, build: Any) -> None:
    failure = failure_of(log, build(log))
    assert isinstance(failure, ProductionError)
    assert "cannot be serialized: LookupError: no word for three" in failure.what
    for place in ("task 0_0", "in-0 offset 2", "timestamp 3"):
        assert place in failure.where
    assert "the value is an int (to be written as Serde.of(write, int)), read from topic in" in failure.why
    assert "production_exception_handler" in failure.hint
    assert isinstance(failure.__cause__, LookupError)
    run_to_the_end(log, build(log, production_exception_handler="continue"))
    assert len(written(log)) == 4


def test_a_dead_letter_holds_the_input_record(log: Log) -> None:
    run_to_the_end(log, sink(log, production_exception_handler="dead_letter", **DEAD))
    assert written(log) == [b"1", b"2", b"4", b"5"]
    (letter,) = dead_letters(log)
    assert (letter.key, letter.value, letter.timestamp) == (b"k", (3).to_bytes(8), 3)
    assert told(letter)["exception"] == "builtins.LookupError"
    assert (told(letter)["topic"], told(letter)["offset"]) == ("in", "2")


def test_at_a_store_the_processing_handler_decides(log: Log) -> None:
    failure = failure_of(log, store(log))
    assert isinstance(failure, ProcessingError)
    assert "KSTREAM-REDUCE" in failure.what
    assert "LookupError" in failure.what
    assert "in-0 offset 2" in failure.where
    run_to_the_end(log, store(log, processing_exception_handler="continue"))
    assert [int.from_bytes(value) for value in written(log)] == [1, 2, 4, 5]


def test_a_serde_that_cannot_be_made_for_a_topic_ends_the_application_with_its_step(log: Log) -> None:
    class Broken(Serde[int]):
        def serializer(self, topic: str) -> Any:
            raise RuntimeError(f"no schema for {topic}")

        def deserializer(self, topic: str) -> Any:
            raise RuntimeError(f"no schema for {topic}")

    app = log.app("broken")
    app.stream("in", key=str, value=int).to("out", value=Broken())
    failure = failure_of(log, app)
    assert "no schema for out" in failure.what
    assert "task 0_0" in failure.where
    reading = log.app("broken2")
    reading.stream("in", key=str, value=Broken()).to("out", value=int)
    failure = failure_of(log, reading)
    assert "no schema for in" in failure.what
    assert "the source of in-0" in failure.what
    assert "task 0_0" in failure.where
    storing = log.app("broken3")
    storing.stream("in", key=str, value=int).group_by_key().aggregate(
        lambda: 0, lambda whole, value: whole, name="sums", value=Broken()
    )
    failure = failure_of(log, storing)
    assert "no schema for broken3-sums-changelog" in failure.what
    assert "task 0_0" in failure.where


def test_a_file_that_is_no_text_is_refused_by_its_line(folder: Path, pystreams: Any) -> None:
    pystreams("topics", "create", "lines")
    (folder / "lines.bin").write_bytes(b"good\n\xff\xfe\n")
    refused = pystreams("produce", "lines", "--file", "lines.bin")
    assert refused.code in {1, 2}
    assert "Traceback" not in refused.err
    assert "lines.bin" in refused.err
    assert "UTF-8" in refused.err
