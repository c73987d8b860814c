"""A table in memory may keep the rows that were used last, and forget the others."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import StreamsBuilder
from pystreams.errors import TopologyError
from pystreams.testing import TopologyTestDriver


def test_a_count_of_a_row_that_was_forgotten_begins_anew() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    counted = grouped.count(name="c", persistent=False, max_entries=2, cached=False)
    counted.map_values(str).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for key in "abacbaa":
            topic.pipe_input(key, "x", timestamp=1)
        records = driver.create_output_topic("out", key=str, value=str).read_records()
    assert "".join(f"{record.key}{record.value} " for record in records) == "a1 b1 a2 c1 b1 a1 a2 "


@pytest.mark.parametrize(
    "arguments, told",
    [
        ({"max_entries": 5}, "takes max_entries= only in memory"),
        ({"max_entries": 5, "persistent": False, "history": 1}, "and without history="),
        ({"max_entries": -1, "persistent": False}, "cannot keep max_entries=-1"),
        ({"max_entries": "5", "persistent": False}, "cannot keep max_entries='5'"),
    ],
)
def test_misuse_is_reported(arguments: Any, told: str) -> None:
    with pytest.raises(TopologyError) as caught:
        StreamsBuilder().table("t", name="s", **arguments)
    assert told in str(caught.value)
