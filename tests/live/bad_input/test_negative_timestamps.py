"""Records without a valid time: an error by default, and three other ways to go on."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams.app import App
from pystreams.errors import ProcessingError
from pystreams.timestamps import ConsumedRecord
from tests.live.bad_input.kit import failure_of
from tests.live.support import Log, caught_up, run_to_the_end

RECORDS = [("k", 1, 10), ("k", 2, -1), ("k", 3, 30), ("k", 4, -7)]


@pytest.fixture(autouse=True)
def records(log: Log) -> None:
    log.create("in", "out")
    log.write("in", RECORDS)


def copy(log: Log, **settings: Any) -> App:
    app = log.app("copy", **settings)
    app.stream("in", key=str, value=int).to("out")
    return app


def copied(log: Log) -> list[tuple[int, int]]:
    return [(record.value, record.timestamp) for record in log.read("out")]


def test_by_default_the_application_stops_and_names_the_choices(log: Log) -> None:
    failure = failure_of(log, copy(log))
    assert isinstance(failure, ProcessingError)
    assert "invalid timestamp -1" in failure.what
    for place in ("task 0_0", "KSTREAM-SOURCE-0000000000", "in-0 offset 1"):
        assert place in failure.where
    for choice in ("log_and_skip", "partition_time", "timestamp_extractor"):
        assert choice in failure.hint


def test_after_the_stop_another_extractor_goes_on_at_the_record(log: Log) -> None:
    failure_of(log, copy(log))
    run_to_the_end(log, copy(log, default_timestamp_extractor="partition_time"))
    assert copied(log) == [(1, 10), (2, 10), (3, 30), (4, 30)]


def test_they_can_be_left_out_and_are_counted(log: Log) -> None:
    streams = log.start(copy(log, default_timestamp_extractor="log_and_skip"))
    caught_up(streams)
    assert copied(log) == [(1, 10), (3, 30)]
    assert streams.metrics.total("dropped-records-total") == 2


def test_an_extractor_may_give_them_a_time(log: Log) -> None:
    def from_value(record: ConsumedRecord) -> int:
        return record.timestamp if record.timestamp >= 0 else 100 * record.value

    run_to_the_end(log, copy(log, default_timestamp_extractor=from_value))
    assert copied(log) == [(1, 10), (2, 200), (3, 30), (4, 400)]


@pytest.mark.parametrize(
    "answer,told", [(None, "returned None"), ("late", "returned 'late'"), (1.5, "returned 1.5")]
)
def test_an_extractor_that_gives_no_time_is_named_with_the_record(
    log: Log, answer: object, told: str
) -> None:
    failure = failure_of(log, copy(log, default_timestamp_extractor=lambda record: answer))
    assert told in failure.what
    for place in ("task 0_0", "KSTREAM-SOURCE-0000000000", "in-0 offset 0"):
        assert place in failure.where


def test_an_extractor_that_raises_stops_the_task_and_when_mended_nothing_is_lost(log: Log) -> None:
    def extract(record: ConsumedRecord) -> int:
        return {10: 1, -1: 2, 30: 3}[record.timestamp]

    failure = failure_of(log, copy(log, default_timestamp_extractor=extract))
    assert "KeyError: -7" in failure.what
    assert "in-0 offset 3" in failure.where
    assert "test_negative_timestamps.py" in failure.why, "where the extractor stands"
    assert isinstance(failure.__cause__, KeyError)
    run_to_the_end(log, copy(log, default_timestamp_extractor="log_and_skip"))
    assert [value for value, _ in copied(log) if value != 2] == [1, 3]


def test_a_processor_cannot_forward_one(log: Log) -> None:
    from pystreams import Processor
    from pystreams.record import Record

    class Backwards(Processor[str, int, str, int]):
        def process(self, record: Record[str, int]) -> None:
            self.context.forward(record.with_timestamp(record.timestamp - 20))

    app = log.app("backwards", default_timestamp_extractor="log_and_skip")
    app.stream("in", key=str, value=int).process(Backwards, key=str, value=int).to("out")
    failure = failure_of(log, app)
    assert "negative timestamp -10" in failure.what
    assert "in-0 offset 0" in failure.where
