"""A join looks for records that have waited long enough where the first of them is: RocksDB keeps what has left as
deletions for a time, and to pass over all of them for each record would take longer and longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pystreams import JoinWindows, StreamsBuilder
from pystreams.state.overlay import Overlay
from pystreams.testing import TopologyTestDriver


def outer(builder: StreamsBuilder) -> Any:
    one, other = (builder.stream(name, key=str, value=str) for name in ("one", "other"))
    return one.outer_join(other, lambda a, b: f"{a}{b}", windows=JoinWindows.of(10), value=str)


def with_grace(builder: StreamsBuilder) -> Any:
    table = builder.table("other", key=str, value=str, name="t", history=100)
    stream = builder.stream("one", key=str, value=str)
    return stream.left_join(table, lambda a, b: f"{a}{b}", grace=10, value=str)


@pytest.mark.parametrize("build, method, prefix", [(outer, "walk", 0), (with_grace, "scan", 1)])
def test_it_begins_behind_what_has_left(
    build: Callable[..., Any], method: str, prefix: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    read = getattr(Overlay, method)

    def noted(self: Overlay, lower: Any, *upper: Any, **how: Any) -> Any:
        begun.append(-1 if lower is None else int.from_bytes(lower[prefix : prefix + 8], "big"))
        return read(self, lower, *upper, **how)

    monkeypatch.setattr(Overlay, method, noted)
    builder = StreamsBuilder()
    build(builder).to("out")
    with TopologyTestDriver(builder) as driver:
        topics = [driver.create_input_topic(name, key=str, value=str) for name in ("one", "other")]
        for timestamp in range(1_000, 1_100):
            topics[timestamp % 2].pipe_input(f"k{timestamp}", "x", timestamp=timestamp)
            if timestamp == 1_050:
                topics[0].pipe_input("late", "x", timestamp=1_041)
        keys = [key for key, _ in driver.create_output_topic("out", key=str, value=str).read_key_values()]
    assert len(begun) > 30
    assert begun[0] <= 1_000
    assert min(begun[30:]) > 1_000
    assert "late" in keys
    assert len(keys) == len(set(keys)) > 40
