"""The test driver: topics with types and times, stores, internal topics as bytes, and a clean end."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pystreams import StreamsBuilder, TimeWindows
from pystreams.errors import ProcessingError, StateError, TopicError
from pystreams.record import Record
from pystreams.testing import ProducedRecord, TopologyTestDriver


@pytest.fixture
def wordcount() -> StreamsBuilder:
    builder = StreamsBuilder()
    words = builder.stream("lines", value=str).flat_map_values(str.split, value=str)
    words.group_by(lambda word: word, key=str).count(name="counts").to_stream().to("word-counts")
    return builder


def test_what_is_piped_is_processed_at_once(wordcount: StreamsBuilder) -> None:
    with TopologyTestDriver(wordcount) as driver:
        lines = driver.create_input_topic("lines", value=str)
        counts = driver.create_output_topic("word-counts", key=str, value=int)
        lines.pipe_input("hello world")
        lines.pipe_input("hello")
        assert len(counts) == 3
        assert counts.read_key_value() == ("hello", 1)
        assert counts.read_map() == {"world": 1, "hello": 2}
        assert counts.is_empty
        with pytest.raises(LookupError, match="word-counts"):
            counts.read_value()


def test_internal_topics_are_there_as_bytes(wordcount: StreamsBuilder) -> None:
    with TopologyTestDriver(wordcount, {"application_id": "app"}) as driver:
        driver.create_input_topic("lines", value=str, start=5).pipe_input("hi")
        assert driver.produced_topics == {"app-counts-repartition", "app-counts-changelog", "word-counts"}
        assert driver.read_raw("app-counts-changelog") == [
            ProducedRecord("app-counts-changelog", 0, b"hi", (1).to_bytes(8, "big"), 5, ())
        ]


def test_stores_can_be_looked_into_and_prepared(wordcount: StreamsBuilder) -> None:
    with TopologyTestDriver(wordcount) as driver:
        assert driver.store_names == {"counts"}
        driver.store("counts").put("hello", (41, 0))
        driver.create_input_topic("lines", value=str, start=7).pipe_input("hello")
        assert driver.store("counts").get("hello") == (42, 7)
        with pytest.raises(StateError, match="counts"):
            driver.store("words")


def test_an_input_topics_time_starts_with_the_wall_clock_and_advances_by_itself() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).to("out")
    start = datetime(2024, 1, 1, tzinfo=UTC)
    with TopologyTestDriver(builder, initial_wall_clock=start) as driver:
        topic = driver.create_input_topic("in", key=str, value=str, auto_advance=timedelta(seconds=1))
        topic.pipe_input("a", "1")
        topic.advance_time(500)
        topic.pipe_input("a", "2")
        topic.pipe_input("a", "3", timestamp=datetime(2025, 1, 1, tzinfo=UTC))
        topic.pipe_record(Record("a", "4", 9, (("h", b"x"),)))
        topic.pipe_key_values([("a", "5"), ("a", "6")], start=10, advance=2)
        records = driver.create_output_topic("out", key=str, value=str).read_records()
        first = int(start.timestamp() * 1000)
        assert [record.timestamp for record in records] == [first, first + 1500, 1735689600000, 9, 10, 12]
        assert records[3] == Record("a", "4", 9, (("h", b"x"),))


def test_a_topic_that_nobody_reads_is_an_error(wordcount: StreamsBuilder) -> None:
    with TopologyTestDriver(wordcount) as driver, pytest.raises(TopicError, match="lines"):
        driver.create_input_topic("line", value=str).pipe_input("x")


def test_an_output_topic_that_nothing_writes_to_is_an_error_with_the_nearest_name(
    wordcount: StreamsBuilder,
) -> None:
    with TopologyTestDriver(wordcount) as driver:
        typo = driver.create_output_topic("word-count", key=str, value=int)
        for read in (typo.read_record, typo.read_map, lambda: typo.is_empty):
            with pytest.raises(TopicError, match=r"word-count'") as caught:
                read()
            assert "did you mean word-counts?" in caught.value.hint
        with pytest.raises(TopicError, match="lines") as caught:
            driver.create_input_topic("line", value=str).pipe_input("x")
        assert "did you mean lines?" in caught.value.hint


def test_an_output_topic_that_nothing_was_written_to_yet_is_empty(wordcount: StreamsBuilder) -> None:
    with TopologyTestDriver(wordcount) as driver:
        assert driver.create_output_topic("word-counts", key=str, value=int).is_empty
    builder = StreamsBuilder()
    builder.stream("in", value=str).to(lambda value: value)
    with TopologyTestDriver(builder) as driver:
        anywhere = driver.create_output_topic("anywhere", value=str)
        with pytest.raises(LookupError):
            anywhere.read_value()
        driver.create_input_topic("in", value=str).pipe_input("anywhere")
        assert anywhere.read_value() == "anywhere"


def test_what_is_written_to_an_input_topic_is_read_again() -> None:
    builder = StreamsBuilder()
    builder.stream("a", value=str).filter(lambda value: len(value) < 3).map_values(
        lambda v: v + "x", value=str
    ).to("a")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("a", value=str).pipe_input("")
        assert driver.create_output_topic("a", value=str).read_values() == ["x", "xx", "xxx"]


def test_state_is_deleted_also_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    builder = StreamsBuilder()
    builder.table("in", key=str, value=str, name="rows").map_values(int, value=int).to_stream().to("out")
    with TopologyTestDriver(builder) as driver:
        assert list(tmp_path.iterdir())
        with pytest.raises(ProcessingError):
            driver.create_input_topic("in", key=str, value=str).pipe_input("a", "no number")
    assert not list(tmp_path.iterdir())


def test_of_records_with_equal_timestamps_the_one_produced_first_comes_first() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    second, first = stream.repartition(name="second"), stream.repartition(name="first")
    first.map_values(lambda value: "first", value=str).merge(
        second.map_values(lambda value: "second", value=str)
    ).to("out")
    with TopologyTestDriver(builder) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "x")
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_values() == ["second", "first"]


def numbers() -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(int).to("out")
    return builder


def test_a_driver_that_has_failed_takes_no_more() -> None:
    """Else what is piped afterwards would seem to give nothing."""
    with TopologyTestDriver(numbers()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_input("a", "1")
        with pytest.raises(ProcessingError, match="invalid literal"):
            topic.pipe_input("b", "two")
        with pytest.raises(StateError, match="has failed before") as caught:
            topic.pipe_input("c", "3")
        assert "invalid literal" in caught.value.why
        with pytest.raises(StateError, match="has failed before"):
            driver.advance_wall_clock_time(1)
        assert driver.create_output_topic("out", key=str, value=int).read_map() == {"a": 1}


def test_a_driver_that_is_closed_takes_no_more() -> None:
    with TopologyTestDriver(numbers()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
    with pytest.raises(StateError, match="the test driver is closed"):
        topic.pipe_input("a", "1")
    with pytest.raises(StateError, match="the test driver is closed"):
        driver.advance_wall_clock_time(1)


def test_a_topic_that_nobody_reads_does_no_harm() -> None:
    with TopologyTestDriver(numbers()) as driver:
        with pytest.raises(TopicError):
            driver.pipe_bytes("nobody", None, b"x", 1)
        driver.create_input_topic("in", key=str, value=str).pipe_input("a", "1")
        assert driver.queue_size("out") == 1


def test_pairs_are_no_mere_texts() -> None:
    with TopologyTestDriver(numbers()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        wrong: Any = {"a1": "2"}
        with pytest.raises(TypeError, match=r"takes pairs \(key, value\), not 'a1'"):
            topic.pipe_key_values(wrong)
        topic.pipe_key_values({"a": "1"}.items())
        assert driver.create_output_topic("out", key=str, value=int).read_map() == {"a": 1}


def test_records_keep_their_times_or_get_others() -> None:
    headers = (("h", b"1"),)
    records = [Record("a", "1", 50, headers), Record("b", "2", 20)]
    with TopologyTestDriver(numbers()) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        topic.pipe_records(records)
        topic.pipe_records(records, start=100, advance=timedelta(milliseconds=5))
        found = driver.create_output_topic("out", key=str, value=int).read_records()
        assert [(r.timestamp, r.headers) for r in found] == [
            (50, headers),
            (20, ()),
            (100, headers),
            (105, ()),
        ]


def test_a_store_without_a_method_names_those_that_it_has() -> None:
    builder = StreamsBuilder()
    windows = TimeWindows.tumbling(10)
    builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count(name="counts")
    with TopologyTestDriver(builder) as driver:
        store = driver.store("counts")
        with pytest.raises(
            AttributeError, match=r"no attribute 'get': store counts has .*\bfetch, .*put"
        ) as caught:
            store.get("a")
        assert "find_sessions" not in str(caught.value)
        assert not hasattr(store, "get")
