"""A value that cannot be written fails at its record, and a handler is asked: it spoils neither store nor topic."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import StreamsBuilder, TimeWindows
from pystreams.errors import ProcessingError, ProductionError
from pystreams.serde import Serde
from pystreams.testing import TopologyTestDriver


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("windowed", [True, False])
@pytest.mark.parametrize(
    "value_type, wrong", [(int, "7"), (int, 1 << 63), (float, "7"), (str, 7), (bytes, "7"), (bool, "7")]
)
def test_an_aggregate_of_another_type_is_told_where_it_was_made(
    cached: bool, windowed: bool, value_type: Any, wrong: Any
) -> None:
    builder = StreamsBuilder()
    grouped: Any = builder.stream("in", key=str, value=str).group_by_key()
    if windowed:
        grouped = grouped.windowed_by(TimeWindows.tumbling(10))
    grouped.aggregate(
        lambda: None, lambda aggregate, value: wrong, value=value_type, cached=cached, step="fold"
    )
    with TopologyTestDriver(builder) as driver:
        with pytest.raises(ProcessingError) as caught:
            driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", timestamp=1)
        for part in ("step fold raised", "in-0 offset 0", "test_wrong_values_in_stores.py"):
            assert part in str(caught.value)
    with TopologyTestDriver(builder, {"processing_exception_handler": "continue"}) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", timestamp=1)
        assert driver.dropped_records == 1


def test_a_serde_that_gives_text_instead_of_bytes_is_told_at_the_step_that_writes() -> None:
    forgetful: Any = Serde.of(lambda value: value.upper(), bytes.decode)
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).to("out", value=forgetful, step="write")
    with TopologyTestDriver(builder) as driver:
        with pytest.raises(ProductionError) as caught:
            driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", timestamp=1)
        for part in ("the serde of the value gave str, not bytes", "step write", "in-0 offset 0"):
            assert part in str(caught.value)
