"""While stream time waits for tasks that lag, records without a match leave a join when it has passed the ends of their
windows, and not only when later records leave that have come meanwhile."""

from __future__ import annotations

import pytest

from pystreams import JoinWindows, StreamsBuilder
from pystreams.stream_time import TIME_MAX
from pystreams.testing import TopologyTestDriver


@pytest.mark.parametrize("kind", ["left_join", "outer_join"])
def test_an_earlier_record_leaves_before_a_later_one(kind: str) -> None:
    builder = StreamsBuilder()
    left, right = (builder.stream(name, key=str, value=str) for name in ("left", "right"))
    getattr(left, kind)(right, lambda a, b: f"{a}{b}", windows=JoinWindows.of(10), value=str).to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("left", key=str, value=str)
        out = driver.create_output_topic("out", key=str, value=str)

        def bound(time_ms: int) -> list[tuple[str, int]]:
            """What leaves the join when stream time may go so far."""
            driver._task.limit_time(time_ms)
            driver.advance_wall_clock_time(1)  # which commits
            return [(record.key, record.timestamp) for record in out.read_records()]

        assert bound(95) == []
        for key, timestamp in (("a", 90), ("b", 101), ("c", 300)):
            topic.pipe_input(key, "-", timestamp=timestamp)
        assert bound(105) == [("a", 90)]
        # As in Java, what waited at the last look is looked at again when a window has passed since.
        assert bound(116) == [("b", 101)]
        assert bound(TIME_MAX) == []
        topic.pipe_input("d", "-", timestamp=311)
        assert bound(TIME_MAX) == [("c", 300)]
