"""Mistakes are found where they are made, and the message says what to do."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial

import pytest

from pystreams import (
    JoinWindows,
    KStream,
    Processor,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    TopologyError,
    UnlimitedWindows,
    agg,
)
from pystreams.errors import ConfigError


@pytest.fixture
def lines() -> KStream[str, str]:
    return StreamsBuilder().stream("lines", key=str, value=str)


@pytest.mark.parametrize(
    "method",
    [
        "filter",
        "filter_not",
        "map",
        "map_values",
        "flat_map",
        "flat_map_values",
        "select_key",
        "peek",
        "foreach",
    ]
    + ["group_by", "to"],
)
def test_a_function_of_the_wrong_arity_is_refused_with_its_place(lines, method):
    with pytest.raises(TopologyError, match="takes 4 arguments") as caught:
        getattr(lines, method)(lambda a, b, c, d: a)
    assert "test_arguments_are_checked.py" in caught.value.where
    assert "(value) or (key, value)" in caught.value.hint


def test_an_async_function_is_refused(lines):
    async def mapper(value):
        return value

    with pytest.raises(TopologyError, match="async"):
        lines.map_values(mapper)


def test_an_object_with_an_async_call_is_refused(lines):
    class Mapper:
        async def __call__(self, value):
            return value

    with pytest.raises(TopologyError, match="async"):
        lines.map_values(Mapper())


def test_a_function_that_needs_a_keyword_argument_is_refused(lines):
    def scaled(value, *, factor):
        return value * factor

    with pytest.raises(TopologyError, match="cannot be called without factor=") as caught:
        lines.map_values(scaled)
    assert "test_arguments_are_checked.py" in caught.value.where
    lines.map_values(partial(scaled, factor=2))


def test_a_builtin_without_a_signature_gets_the_value(lines):
    lines.map_values(int, value=int).to("out")


def test_an_unknown_argument_is_answered_with_the_nearest_one(lines):
    with pytest.raises(
        TypeError, match=r"count\(\) got an unexpected keyword argument 'cache': did you mean cached\?"
    ):
        lines.group_by_key().count(cache=False)


@pytest.mark.parametrize(
    "call, given, meant",
    [
        (lambda stream: stream.map_values(str, valeu=str), "valeu", "value"),
        (lambda stream: stream.to("out", prtitioner=None), "prtitioner", "partitioner"),
        (lambda stream: stream.join(stream, min, windws=None), "windws", "windows"),
        (lambda stream: stream.group_by(str, ky=str), "ky", "key"),
        (lambda stream: stream.group_by_key().count(stepp="counted"), "stepp", "step"),
        (lambda stream: stream.to_table(cach=True), "cach", "cached"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_misspelt_argument_of_a_step_is_answered_with_the_one_that_was_meant(lines, call, given, meant):
    message = rf"\(\) got an unexpected keyword argument '{given}': did you mean {meant}\?"
    with pytest.raises(TypeError, match=message):
        call(lines)


@pytest.mark.parametrize(
    "call, name, meant",
    [
        (lambda: TimeWindows.tumbling(10, graze=1), "TimeWindows.tumbling", "grace"),
        (lambda: TimeWindows.hopping(10, advnce=5), "TimeWindows.hopping", "advance"),
        (lambda: SlidingWindows.of(10, grace_ms=1), "SlidingWindows.of", "grace"),
        (lambda: SessionWindows.of(10, grase=1), "SessionWindows.of", "grace"),
        (lambda: UnlimitedWindows.of(strat=1), "UnlimitedWindows.of", "start"),
        (lambda: JoinWindows.of(10, gracee=1), "JoinWindows.of", "grace"),
        (
            lambda: Suppressed.until_window_closes(max_record=1),
            "Suppressed.until_window_closes",
            "max_records",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_misspelt_argument_of_windows_is_answered_with_the_one_that_was_meant(call, name, meant):
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an .*: did you mean {meant}"):
        call()


@pytest.mark.parametrize(
    "call, name, meant",
    [
        (lambda: Stores.key_value_store("s", str, str, cach=True), "Stores.key_value_store", "cached"),
        (
            lambda: Stores.window_store("s", str, str, size=1, retension=1),
            "Stores.window_store",
            "retention",
        ),
        (lambda: Stores.lru_map("s", str, str, max_entrys=1), "Stores.lru_map", "max_entries"),
        (lambda: Stores.session_store(nme="s"), "Stores.session_store", "name"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_misspelt_argument_of_stores_is_answered_with_the_one_that_was_meant(call, name, meant):
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an .*: did you mean {meant}"):
        call()


def test_options_of_stores_need_their_names():
    expected = (
        r"^Stores\.list_store\(\) takes 3 arguments without a name \(name, key, value\), and got 4; "
        r"give the others by name: persistent=, logged=, changelog_config=, was=$"
    )
    with pytest.raises(TypeError, match=expected):
        Stores.list_store("s", str, str, True)


def test_windows_take_the_arguments_that_need_no_name():
    assert TimeWindows.tumbling(10) == TimeWindows.hopping(10, advance=10)
    with pytest.raises(
        TypeError, match=r"^TimeWindows\.hopping\(\) takes 1 argument without a name \(size\)"
    ):
        TimeWindows.hopping(10, 5)


def test_an_argument_that_resembles_none_is_refused_as_python_does(lines):
    with pytest.raises(TypeError, match=r"^KStream\.filter\(\) got an unexpected keyword argument 'xyz'$"):
        lines.filter(bool, xyz=1)


def test_an_argument_that_needs_its_name_is_answered_with_the_names_that_it_may_have(lines):
    with pytest.raises(
        TypeError,
        match=r"^KStream\.join\(\) takes 2 arguments without a name \(other, joiner\), and got 3; "
        r"give the others by name: key_fn=, windows=, grace=,",
    ):
        lines.join(lines, min, JoinWindows.of(timedelta(minutes=1)))
    with pytest.raises(
        TypeError, match=r"^KStream\.filter\(\) takes 1 argument without a name \(predicate\), and got 2"
    ):
        lines.filter(bool, "positive")


def test_the_arguments_of_the_builder_are_checked_too():
    with pytest.raises(TypeError, match=r"argument 'valeu': did you mean value\?"):
        StreamsBuilder().stream("in", valeu=str)


def test_declared_fields_of_an_aggregate_may_have_any_name(lines):
    table = lines.group_by_key().aggregate(stepp=agg.count())
    assert table.queryable_store_name is None


def test_a_processor_instead_of_a_supplier_is_refused(lines):
    with pytest.raises(TopologyError, match="a single processor; each task needs its own"):
        lines.process(object())


def test_a_supplier_takes_no_arguments(lines):
    with pytest.raises(TopologyError, match="takes 1 argument") as caught:
        lines.process(lambda record: None)
    assert "test_arguments_are_checked.py" in caught.value.where


def test_a_class_that_takes_arguments_is_refused_with_its_place(lines):
    class Counter(Processor):
        def __init__(self, limit):
            self.limit = limit

    with pytest.raises(TopologyError, match="takes 1 argument") as caught:
        lines.process(Counter)
    assert "test_arguments_are_checked.py" in caught.value.where


def test_one_store_needs_no_brackets():
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value_store("seen", str, str))
    builder.stream("in").process(Processor, stores="seen", step="remember")
    assert "Processor: remember (stores: [seen])" in builder.build().describe()


@pytest.mark.parametrize("method", ["join", "left_join"])
def test_a_join_with_what_is_neither_table_nor_stream_is_refused(lines, method):
    with pytest.raises(TopologyError, match=f"{method} takes a table or a stream, not str"):
        getattr(lines, method)("airlines", lambda line, row: line)


def test_a_merge_with_a_table_is_refused(lines):
    with pytest.raises(TopologyError, match="merge takes a stream, not KTable"):
        lines.merge(lines.to_table())


def test_windows_are_no_mere_duration(lines):
    with pytest.raises(TopologyError, match="windowed_by takes windows"):
        lines.group_by_key().windowed_by(timedelta(days=1))


@pytest.mark.parametrize("method", ["to", "repartition"])
def test_a_partitioner_takes_topic_key_value_and_partitions(lines, method):
    topic = ("out",) if method == "to" else ()
    with pytest.raises(TopologyError, match="takes 2 arguments") as caught:
        getattr(lines, method)(*topic, partitioner=lambda key, value: 0)
    assert "(topic, key, value, partitions)" in caught.value.hint
    with pytest.raises(TopologyError, match="takes a function, not 'murmur'"):
        getattr(lines, method)(*topic, partitioner="murmur")


@pytest.mark.parametrize("topic", [None, 5])
def test_a_topic_is_a_name_or_a_function(lines, topic):
    with pytest.raises(TopologyError, match="name of a topic, or a function"):
        lines.to(topic)
    with pytest.raises(TopologyError, match="does not name a topic"):
        StreamsBuilder().stream(topic)


def test_a_name_is_a_text(lines):
    with pytest.raises(TopologyError, match="5 cannot be a name"):
        lines.filter(bool, step=5)


def test_a_store_that_nobody_added_is_refused_when_the_topology_is_built():
    builder = StreamsBuilder()
    builder.stream("in").process(lambda: None, stores=["nothing"])
    with pytest.raises(TopologyError, match="store nothing has not been added"):
        builder.build()


def test_a_table_without_windows_takes_no_retention(lines):
    with pytest.raises(TopologyError, match="has no windows"):
        lines.group_by_key().count(name="n", retention=10)


def test_windows_are_kept_at_least_for_size_and_grace(lines):
    windowed = lines.group_by_key().windowed_by(TimeWindows.tumbling(10, grace=5))
    with pytest.raises(TopologyError, match="retention=14 ms") as caught:
        windowed.count(name="n", retention=14)
    assert "at least retention=15" in caught.value.hint


@pytest.mark.parametrize(
    "windows, said",
    [
        (lambda: TimeWindows.tumbling(0), "size must be at least 1 ms"),
        (lambda: TimeWindows(10, 0, 0), "advance_ms must be at least 1 ms"),
        (lambda: TimeWindows(timedelta(1), timedelta(1), 0), "is not a number of milliseconds"),  # type: ignore[arg-type]
        (lambda: SessionWindows(0, 0), "gap_ms must be at least 1 ms"),
        (lambda: SlidingWindows(10, -1), "grace_ms must be at least 0 ms"),
        (lambda: JoinWindows(1, 1, -2), "grace_ms must be at least 0 ms, not -2"),
        (lambda: Suppressed(-1), "wait_ms must be at least 0 ms"),
        (lambda: TimeWindows.tumbling(1.5), "size=1.5 is not a duration"),
        (lambda: TimeWindows.tumbling(10, grace=-1), "grace must be at least 0 ms"),
        (lambda: TimeWindows.hopping(10, advance=11), "cannot advance by 11 ms"),
        (lambda: TimeWindows.hopping(10, advance=0), "advance must be at least 1 ms"),
    ],
)
def test_impossible_windows_are_refused(windows, said):
    with pytest.raises(TopologyError, match=said):
        windows()


def test_durations_are_timedeltas_or_milliseconds():
    day = timedelta(days=1)
    assert TimeWindows.tumbling(day, grace=timedelta(seconds=1)) == TimeWindows(86_400_000, 86_400_000, 1_000)
    assert TimeWindows.hopping(10, advance=5) == TimeWindows(10, 5, 0)


@pytest.mark.parametrize("wrong", [0, -1, "3", 2.0, True])
def test_a_repartition_topic_has_at_least_one_partition(lines, wrong):
    with pytest.raises(TopologyError, match="at least one"):
        lines.repartition(partitions=wrong)


def test_nothing_follows_the_default_branch(lines):
    split = lines.split()
    split.default()
    with pytest.raises(TopologyError, match="already has its default branch"):
        split.branch(str.isupper)
    with pytest.raises(TopologyError, match="already has its default branch"):
        split.default()


def test_streams_of_different_builders_do_not_meet(lines):
    other = StreamsBuilder()
    with pytest.raises(TopologyError, match="different builders"):
        lines.merge(other.stream("in"))
    with pytest.raises(TopologyError, match="different builders"):
        lines.join(other.table("table"), lambda line, row: line)


@pytest.mark.parametrize(
    "reset", ["first", "by_duration", "by_duration:1h", "by_duration:-PT1S", timedelta(days=-1)]
)
def test_an_unknown_place_to_begin_is_refused(reset):
    said = re.escape(f"auto_offset_reset={reset!r} is unknown")
    with pytest.raises(TopologyError, match=said):
        StreamsBuilder().stream("in", auto_offset_reset=reset)
    with pytest.raises(TopologyError, match=said):
        StreamsBuilder().table("in", auto_offset_reset=reset)
    with pytest.raises(TopologyError, match=said):
        Topology().add_source("in", "in", auto_offset_reset=reset)


def test_an_unknown_timestamp_extractor_is_refused():
    with pytest.raises(ConfigError, match="unknown"):
        StreamsBuilder().stream("in", timestamp_extractor="yesterday")


def test_a_stream_of_no_topics_is_refused():
    with pytest.raises(TopologyError, match="reads no topics"):
        StreamsBuilder().stream([])
