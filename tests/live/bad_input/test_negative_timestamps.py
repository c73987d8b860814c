"""Records without a valid time: an error by default, and three other ways to go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from pystreams import TopologyTestDriver
from pystreams.app import App
from pystreams.errors import ProcessingError
from pystreams.serde import serde_for
from pystreams.timestamps import ConsumedRecord
from tests.backfill.kit import Backfill, lines, memory, single
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
    "answer,told",
    [
        (None, "returned None"),
        ("late", "returned 'late'"),
        (1.5, "returned 1.5"),
        (float("nan"), "returned nan"),
        (float("inf"), "returned inf"),
        (True, "returned True"),
        (datetime(2013, 1, 1), "returned datetime.datetime(2013, 1, 1, 0, 0)"),  # noqa: DTZ001 - that is the point
        (datetime(2013, 1, 1).date(), "returned datetime.date(2013, 1, 1)"),  # noqa: DTZ001 - only a date
    ],
)
def test_an_extractor_that_gives_no_time_is_named_with_the_record(
    log: Log, answer: object, told: str
) -> None:
    failure = failure_of(log, copy(log, default_timestamp_extractor=lambda record: answer))
    assert told in failure.what
    for place in ("task 0_0", "KSTREAM-SOURCE-0000000000", "in-0 offset 0", "test_negative_timestamps.py:"):
        assert place in failure.where
    assert failure.__cause__ is None, "no lines of ours are shown"


def test_times_as_floats_and_datetimes_are_taken(log: Log) -> None:
    berlin = timezone(timedelta(hours=1))
    times = [
        7.0,
        datetime(2013, 1, 1, 1, tzinfo=berlin),
        datetime(1970, 1, 1, 0, 0, 0, 1999, tzinfo=UTC),
        -1.0,
    ]

    def extract(record: ConsumedRecord) -> float | datetime:
        return times[record.value - 1]

    streams = log.start(copy(log, default_timestamp_extractor=extract))
    caught_up(streams)
    assert copied(log) == [(1, 7), (2, 1_356_998_400_000), (3, 1)]
    assert all(type(time) is int for _, time in copied(log))
    assert streams.metrics.total("dropped-records-total") == 1


@pytest.mark.parametrize("way", ["live", "driver", "backfill"])
def test_records_without_a_time_are_left_out_where_the_processing_handler_says_so(
    log: Log, tmp_path: Path, way: str
) -> None:
    """One whose extractor raises, and one for which it gives nothing."""

    def extract(record: ConsumedRecord) -> Any:
        return {1: 5, 3: None, 4: 9}[record.value]

    log.create("dead")
    app = copy(
        log,
        default_timestamp_extractor=extract,
        processing_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead",
    )
    match way:
        case "live":
            caught_up(log.start(app))
            written, dead = copied(log), [record.value for record in log.read("dead")]
        case "driver":
            with TopologyTestDriver(app) as driver:
                source = driver.create_input_topic("in", key=str, value=int)
                for key, value, timestamp in RECORDS:
                    source.pipe_input(key, value, timestamp=timestamp)
                out = driver.create_output_topic("out", key=str, value=int).read_records()
                written = [(record.value, record.timestamp) for record in out]
                dead = [
                    record.value
                    for record in driver.create_output_topic("dead", key=str, value=int).read_records()
                ]
        case _:
            found = single(Backfill(app, memory({"in": [lines(RECORDS)]}), tmp_path / "staging").run())
            decode = serde_for(int).deserializer("out")
            written = [(decode(record.value), record.timestamp) for record in found.sinks["out"]]
            dead = [decode(record.value) for record in found.sinks["dead"]]
    assert written == [(1, 5), (4, 9)]
    assert dead == [2, 3]


def test_an_extractor_that_raises_stops_the_task_and_when_mended_nothing_is_lost(log: Log) -> None:
    def extract(record: ConsumedRecord) -> int:
        return {10: 1, -1: 2, 30: 3}[record.timestamp]

    failure = failure_of(log, copy(log, default_timestamp_extractor=extract))
    assert "KeyError: -7" in failure.what
    assert "in-0 offset 3" in failure.where
    assert "test_negative_timestamps.py" in failure.where, "where the extractor stands"
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
