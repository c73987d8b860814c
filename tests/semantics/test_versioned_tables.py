"""A table with a history takes late updates for what they are: older versions, which change nothing that is newer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pystreams import StreamsBuilder, Suppressed, TimeWindows
from pystreams.errors import TopologyError
from pystreams.testing import TopologyTestDriver

Piped = tuple[str, str, str | None, int]
Build = Callable[[StreamsBuilder], Any]


def results(build: Build, piped: list[Piped]) -> tuple[list[tuple[str, str | None, int]], int]:
    """(key, value, timestamp) of what ``build`` makes of (topic, key, value, timestamp), and how many were dropped."""
    builder = StreamsBuilder()
    build(builder).to("out")
    with TopologyTestDriver(builder, {"statestore_cache_max_bytes": 0}) as driver:
        topics = {
            name: driver.create_input_topic(name, key=str, value=str) for name in {name for name, *_ in piped}
        }
        for topic, key, value, timestamp in piped:
            topics[topic].pipe_input(key, value, timestamp=timestamp)
        records = driver.create_output_topic("out", key=str, value=str).read_records()
        return [(record.key, record.value, record.timestamp) for record in records], driver.dropped_records


def versions(builder: StreamsBuilder, topic: str = "t", history: int = 100) -> Any:
    return builder.table(topic, key=str, value=str, name=f"{topic}-versions", history=history)


def both(one: str, two: str | None) -> str:
    return f"{one}+{two}"


UPDATES: list[Piped] = [("t", "a", "1", 10), ("t", "a", "3", 30), ("t", "a", "2", 20)]


def test_a_stream_meets_the_row_of_its_own_time() -> None:
    def build(builder: StreamsBuilder) -> Any:
        return builder.stream("s", key=str, value=str).left_join(versions(builder), both, value=str)

    asked: list[Piped] = [("s", "a", f"at {time}", time) for time in (5, 10, 25, 30)]
    found, _ = results(build, [*UPDATES, *asked])
    assert [value for _, value, _ in found] == ["at 5+None", "at 10+1", "at 25+2", "at 30+3"]


def test_so_it_does_behind_steps_without_a_store_of_their_own() -> None:
    def build(builder: StreamsBuilder) -> Any:
        table = versions(builder).filter(lambda value: value != "2").map_values(lambda value: value * 2)
        return builder.stream("s", key=str, value=str).left_join(table, both, value=str)

    found, _ = results(build, [*UPDATES, ("s", "a", "x", 15), ("s", "a", "y", 25)])
    assert [value for _, value, _ in found] == ["x+11", "y+None"]


def test_a_row_that_is_older_than_the_history_is_not_met() -> None:
    def build(builder: StreamsBuilder) -> Any:
        return builder.stream("s", key=str, value=str).join(versions(builder), both, value=str)

    late: list[Piped] = [("t", "b", "x", 150), ("s", "a", "too old", 29), ("s", "a", "latest", 40)]
    assert results(build, [*UPDATES, *late])[0] == [("a", "latest+3", 40)]


def test_joins_of_tables_leave_out_what_is_not_the_latest() -> None:
    def build(builder: StreamsBuilder) -> Any:
        other = builder.table("o", key=str, value=str)
        return versions(builder).join(other, both, value=str).to_stream()

    found, dropped = results(build, [("o", "a", "x", 1), *UPDATES])
    assert found == [("a", "1+x", 10), ("a", "3+x", 30)]
    assert dropped == 1


def test_joins_by_a_foreign_key_do_so_on_both_sides() -> None:
    def build(builder: StreamsBuilder) -> Any:
        other = versions(builder, "o")
        return versions(builder).join(other, both, foreign_key=lambda value: "key", value=str).to_stream()

    piped: list[Piped] = [("o", "key", "new", 5), ("o", "key", "old", 1), *UPDATES]
    found, dropped = results(build, piped)
    assert [value for _, value, _ in found] == ["1+new", "3+new"]
    assert dropped == 2


def test_groups_of_rows_leave_it_out_as_well() -> None:
    def build(builder: StreamsBuilder) -> Any:
        grouped = versions(builder).group_by(lambda value: ("all", value), key=str, value=str)
        return grouped.aggregate(
            lambda: "",
            lambda held, value: held + value,
            lambda held, value: held.replace(value, ""),
            value=str,
        ).to_stream()

    found, _ = results(build, UPDATES)
    assert [value for _, value, _ in found] == ["1", "3"]


def test_changes_are_forwarded_in_the_order_in_which_they_come_but_not_those_that_are_too_late() -> None:
    def build(builder: StreamsBuilder) -> Any:
        return versions(builder, history=15).to_stream()

    found, dropped = results(build, [*UPDATES, ("t", "a", "0", 14)])
    assert [value for _, value, _ in found] == ["1", "3", "2"]
    assert dropped == 1


def test_any_table_may_keep_a_history() -> None:
    def build(builder: StreamsBuilder) -> Any:
        stream = builder.stream("s", key=str, value=str)
        counts = stream.group_by_key().count(name="counts", history=1_000)
        return stream.join(counts, lambda value, count: f"{value}{count}", value=str)

    piped: list[Piped] = [("s", "a", "x", 10), ("s", "a", "y", 20), ("s", "a", "z", 15)]
    found, _ = results(build, piped)
    # The count of the third record has the time of the second.
    assert [value for _, value, _ in found] == ["x1", "y2", "z1"]


def misuses() -> list[tuple[Build, str]]:
    def windowed(builder: StreamsBuilder) -> Any:
        return builder.stream("s").group_by_key().windowed_by(TimeWindows.tumbling(10))

    def table(**arguments: Any) -> Build:
        return lambda builder: builder.table("t", **arguments)

    return [
        (table(history=5), "needs a name for its store"),
        (table(name="v", history_segment=5), "does not take history_segment="),
        (table(name="v", history=-1), "history must be at least 0 ms"),
        (table(name="v", history="1 h"), "history='1 h' is not a duration"),
        (
            lambda builder: windowed(builder).count(name="c", history=5),
            "has windows, so it does not take history=",
        ),
        (lambda builder: builder.global_table("g", name="v", history=5), "cannot keep a history"),
        (
            lambda builder: (
                versions(builder).map_values(lambda value: value).suppress(Suppressed.until_time_limit(1))
            ),
            "of a versioned table cannot be held back",
        ),
    ]


@pytest.mark.parametrize("wrong, told", misuses(), ids=[told for _, told in misuses()])
def test_misuse_is_reported(wrong: Build, told: str) -> None:
    with pytest.raises(TopologyError) as caught:
        wrong(StreamsBuilder())
    assert told in str(caught.value)
