"""``auto_offset_reset`` by duration: without a committed offset reading begins with what is young enough.

By the records' timestamps, as Java's KIP-1106 has it.
"""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from pystreams.app import App
from tests.live.support import Log, run_to_the_end

pytestmark = pytest.mark.both_logs

HOUR_MS = 3_600_000
#: The clock goes on while a test runs; nothing here is nearer to a limit than this.
SLACK_MS = 600_000


def ages(log: Log, *ages_ms: int) -> None:
    """Write a record of each age, named by it."""
    now_ms = time.time_ns() // 1_000_000
    log.write("in", [(None, age_ms, now_ms - age_ms) for age_ms in ages_ms])


def copying(log: Log, app_reset: object = "earliest", source_reset: object = None) -> App:
    app = log.app("copying", auto_offset_reset=app_reset)
    app.stream("in", value=int, auto_offset_reset=source_reset).to("out")
    return app


def copied(log: Log) -> list[int]:
    return [record.value for record in log.read("out")]


@pytest.mark.parametrize(
    "app_reset, source_reset",
    [
        ("by_duration:PT1H", None),
        (timedelta(hours=1), None),
        ("latest", "by_duration:PT1H"),
        ("none", timedelta(hours=1)),
    ],
)
def test_reading_begins_with_the_first_record_that_is_young_enough(
    log: Log, app_reset: object, source_reset: object
) -> None:
    log.create("in", "out")
    ages(log, 2 * HOUR_MS, HOUR_MS + SLACK_MS, HOUR_MS - SLACK_MS, 2 * HOUR_MS + 1, 0)
    run_to_the_end(log, copying(log, app_reset, source_reset))
    # From there on everything, whatever its timestamp.
    assert copied(log) == [HOUR_MS - SLACK_MS, 2 * HOUR_MS + 1, 0]


def test_where_all_records_are_older_reading_begins_at_the_end_and_that_is_remembered(log: Log) -> None:
    log.create("in", "out")
    ages(log, 3 * HOUR_MS, 2 * HOUR_MS)
    run_to_the_end(log, copying(log, "by_duration:PT1H"))
    assert copied(log) == []
    ages(log, 4 * HOUR_MS)
    run_to_the_end(log, copying(log, "by_duration:PT1H"))
    assert copied(log) == [4 * HOUR_MS]


def test_a_duration_back_to_before_1970_is_everything(log: Log) -> None:
    log.create("in", "out")
    ages(log, 3 * HOUR_MS, 0)
    run_to_the_end(log, copying(log, "by_duration:P36500D"))
    assert copied(log) == [3 * HOUR_MS, 0]


def test_a_committed_offset_counts_more(log: Log) -> None:
    log.create("in", "out")
    ages(log, 3 * HOUR_MS)
    run_to_the_end(log, copying(log))
    ages(log, 2 * HOUR_MS, 0)
    run_to_the_end(log, copying(log, "by_duration:PT1H"))
    assert copied(log) == [3 * HOUR_MS, 2 * HOUR_MS, 0]


def test_internal_topics_are_read_from_their_beginning_all_the_same(log: Log) -> None:
    log.create("in", "out")
    ages(log, 3 * HOUR_MS, 2 * HOUR_MS, 0)
    app = log.app("grouping", auto_offset_reset="by_duration:PT1H")
    values = app.stream("in", value=int, auto_offset_reset="earliest")
    values.group_by(lambda _: "all", key=str).count(name="counts").to_stream().to("out")
    run_to_the_end(log, app)
    assert copied(log)[-1] == 3
