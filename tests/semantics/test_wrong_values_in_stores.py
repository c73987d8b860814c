"""A value that cannot be written fails at its record, and a handler is asked: it spoils neither store nor topic."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pystreams import StreamsBuilder, TimeWindows
from pystreams.errors import ProcessingError, ProductionError, SerializationError
from pystreams.serde import Serde
from pystreams.testing import TopologyTestDriver


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("windowed", [True, False])
@pytest.mark.parametrize(
    "value_type, wrong", [(int, "7"), (int, 1 << 63), (float, "7"), (str, 7), (bytes, "7"), (bool, "7")]
)
def test_an_aggregate_of_another_type_is_reported_where_it_was_made(
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


class Total(msgspec.Struct):
    number: int


@pytest.mark.parametrize("cached", [True, False])
def test_a_value_that_cannot_be_read_again_costs_its_own_key_only(cached: bool) -> None:
    """A field of another type is written as it is, and found out when it is read."""
    builder = StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    grouped.aggregate(
        lambda: Total(0),
        lambda total, value: Total(value if value == "bad" else total.number + int(value)),  # type: ignore[arg-type]
        cached=cached,
        value=Total,
        name="totals",
        step="fold",
    ).to_stream().to("out")
    config: dict[str, Any] = {"processing_exception_handler": "continue"}
    with TopologyTestDriver(builder, config) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_key_values([("a", "1"), ("b", "bad"), ("c", "2"), ("b", "3"), ("c", "5")])
        totals = {record.key: record.value for record in driver.read_raw("out")}
        assert (totals[b"a"], totals[b"c"]) == (b'{"number":1}', b'{"number":7}')
        assert driver.dropped_records == (2 if cached else 1)
    with TopologyTestDriver(builder) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        with pytest.raises(ProcessingError) as caught:
            topic.pipe_key_values([("a", "bad"), ("a", "1")])
        misfit = "does not fit Total: Expected `int`, got `str`"
        for part in ("step fold failed", misfit, "in-0 offset", "test_wrong_values_in_stores.py"):
            assert part in str(caught.value)


def test_a_serde_that_gives_text_instead_of_bytes_is_reported_at_the_step_that_writes() -> None:
    forgetful: Any = Serde.of(lambda value: value.upper(), bytes.decode)
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).to("out", value=forgetful, step="write")
    with TopologyTestDriver(builder) as driver:
        with pytest.raises(ProductionError) as caught:
            driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", timestamp=1)
        for part in ("the serde of the value returned str, not bytes", "step write", "in-0 offset 0"):
            assert part in str(caught.value)


def test_what_a_serde_says_of_a_value_is_reported_where_it_was_to_be_written() -> None:
    def refuse(_value: object) -> bytes:
        raise SerializationError("this cannot be written", why="the field item is not text")

    choosy: Any = Serde.of(refuse, bytes.decode)
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).to("out", value=choosy, step="write")
    with TopologyTestDriver(builder) as driver:
        with pytest.raises(ProductionError) as caught:
            driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", timestamp=1)
        assert "the field item is not text" in caught.value.why
