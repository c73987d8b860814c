"""A window takes records until stream time reaches its end plus the grace."""

from __future__ import annotations

from pystreams import StreamsBuilder, TimeWindows, Windowed
from pystreams.serde import STR, TimeWindowedSerde
from pystreams.testing import TopologyTestDriver


def counts(windows: TimeWindows, timestamps: list[int]) -> tuple[list[tuple[Windowed[str], int]], int]:
    """What a windowed count of one key emits, and how many records it dropped."""
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.windowed_by(windows).count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for timestamp in timestamps:
            topic.pipe_input("a", "x", timestamp=timestamp)
        out = driver.create_output_topic("out", key=TimeWindowedSerde(STR, windows.size_ms), value=int)
        return out.read_key_values(), driver.dropped_records


def window(start: int, size: int) -> Windowed[str]:
    return Windowed("a", start, start + size)


def test_a_late_record_counts_while_its_window_is_open() -> None:
    emitted, dropped = counts(TimeWindows.tumbling(10, grace=5), [1, 14, 2])
    assert emitted == [(window(0, 10), 1), (window(10, 10), 1), (window(0, 10), 2)]
    assert dropped == 0


def test_a_record_is_dropped_once_stream_time_has_reached_end_plus_grace() -> None:
    emitted, dropped = counts(TimeWindows.tumbling(10, grace=5), [1, 15, 2])
    assert emitted == [(window(0, 10), 1), (window(10, 10), 1)]
    assert dropped == 1


def test_hopping_windows_are_updated_in_ascending_order_and_dropped_one_by_one() -> None:
    emitted, dropped = counts(TimeWindows.hopping(10, advance=5), [12, 7])
    assert emitted == [(window(5, 10), 1), (window(10, 10), 1), (window(5, 10), 2)]
    assert dropped == 1


def test_a_null_key_does_not_advance_the_windows_time() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.windowed_by(TimeWindows.tumbling(10)).count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input(None, "x", timestamp=100)
        topic.pipe_input("a", "x", timestamp=1)
        out = driver.create_output_topic("out", key=TimeWindowedSerde(STR, 10), value=int)
        assert out.read_key_values() == [(window(0, 10), 1)]
        assert driver.stream_time == 100


def test_a_result_has_the_greatest_timestamp_of_its_window() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.windowed_by(TimeWindows.tumbling(10)).count().to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for timestamp in (4, 9, 2):
            topic.pipe_input("a", "x", timestamp=timestamp)
        out = driver.create_output_topic("out", key=TimeWindowedSerde(STR, 10), value=int)
        assert [record.timestamp for record in out.read_records()] == [4, 9, 9]
