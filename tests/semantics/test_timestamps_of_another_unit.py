"""Where a wrong timestamp makes records late, the messages name it, and no grace, which would not help."""

from __future__ import annotations

import pytest

from pystreams import StreamsBuilder, TimeWindows
from pystreams.engine.failures.left_out import totals_text
from pystreams.testing import TopologyTestDriver

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000


def messages_about(caplog: pytest.LogCaptureFixture, *timestamps: int, clock_ms: int = NOW_MS) -> list[str]:
    """The warning of the first late record, and the text for the last line of ``run``."""
    builder = StreamsBuilder()
    windows = TimeWindows.tumbling(10)
    builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count(name="counts")
    with TopologyTestDriver(builder, initial_wall_clock=clock_ms) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for timestamp in timestamps:
            topic.pipe_input("a", "x", timestamp=timestamp)
        (warning,) = [one.getMessage() for one in caplog.records if one.name.endswith("left_out")]
        return [warning, totals_text({}, driver.late_records)]


@pytest.mark.parametrize("factor", [1_000, 1_000_000], ids=["microseconds", "nanoseconds"])
def test_after_a_timestamp_in_a_finer_unit_the_messages_name_it_and_no_grace(
    caplog: pytest.LogCaptureFixture, factor: int
) -> None:
    for message in messages_about(caplog, NOW_MS * factor, NOW_MS, NOW_MS + 1):
        assert (
            "is ahead of the clock: a record's timestamp is most likely in microseconds or nanoseconds"
            in message
        )
        assert "pystreams doctor APP names such records" in message
        assert "grace" not in message


def test_stream_time_that_is_ahead_is_shown_as_a_date(caplog: pytest.LogCaptureFixture) -> None:
    warning, total = messages_about(caplog, NOW_MS + 2 * DAY_MS, NOW_MS)
    cause = "a record's timestamp is in the future (pystreams doctor APP names such records)"
    assert (
        f"stream time was 2027-01-17T08:00:00Z, so it was 2 d late; stream time is ahead of the clock: {cause}"
        in warning
    )
    assert total.endswith(f"2 d late; stream time (2027-01-17T08:00:00Z) is ahead of the clock: {cause}")


def test_a_timestamp_in_seconds_is_named_where_the_record_is_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for message in messages_about(caplog, NOW_MS, NOW_MS // 1_000):
        assert (
            "late; its timestamp is most likely in seconds; timestamps are milliseconds since 1970" in message
        )
        assert "grace" not in message


def test_of_several_late_records_one_may_have_its_timestamp_in_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, total = messages_about(caplog, NOW_MS, NOW_MS // 1_000, NOW_MS - 20)
    assert "late; a record's timestamp is most likely in seconds" in total


def test_up_to_a_day_ahead_of_the_clock_the_grace_is_named(caplog: pytest.LogCaptureFixture) -> None:
    for message in messages_about(caplog, NOW_MS + DAY_MS, NOW_MS):
        assert "a grace of at least" in message
        assert "clock" not in message


def test_a_clock_that_a_test_begins_at_0_says_nothing_about_times_of_today(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for message in messages_about(caplog, NOW_MS, NOW_MS - 20, clock_ms=0):
        assert "a grace of at least" in message
        assert "clock" not in message
