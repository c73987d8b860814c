"""``play`` shows what follows from each record."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from pystreams import App, Processor, PunctuationType, Record, TimeWindows, Topology
from pystreams.errors import TopicError
from pystreams.testing import play


def cells(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_what_follows_stands_below_its_cause_in_columns():
    app = App("a")
    app.stream("lines", key=str, value=str).flat_map_values(str.split).to("words")
    told = play(app, ("lines", "a", "to be", 1), ("lines", None, "", 20))
    assert told.splitlines() == [
        "lines    a     to be  @1",
        "  words  a     to     @1",
        "  words  a     be     @1",
        "lines    None  ''     @20",
    ]


def test_types_are_those_of_sources_and_sinks_and_internal_topics_are_not_shown():
    app = App("a")
    counts = (
        app.stream("in", value=str).group_by(str.lower).windowed_by(TimeWindows.tumbling(10)).count(name="c")
    )
    counts.to_stream().to("out")
    assert cells(play(app, ("in", None, "Ann", 12))) == [
        ["in", "None", "Ann", "@12"],
        ["out", "ann@10/20", "1", "@12"],
    ]


def test_headers_and_the_wall_clock_are_shown():
    class Ticks(Processor[str, str, str, str]):
        def init(self, context):
            super().init(context)
            context.schedule(1_000, PunctuationType.WALL_CLOCK_TIME, self.tick)

        def process(self, record):
            self.context.forward(record)

        def tick(self, time_ms):
            self.context.forward(Record("tick", "tock", time_ms))

    app = App("a")
    app.stream("in", key=str, value=str).process(Ticks).to_table(name="t", key=str, value=str).to_stream().to(
        "out"
    )
    told = play(app, ("in", "k", "v", 1, (("h", b"x"), ("g", None))), timedelta(seconds=1))
    assert told.splitlines() == [
        "in     k     v     @1  h=b'x', g=None",
        "  out  k     v     @1  h=b'x', g=None",
        "(wall clock: 1000)",
        "  out  tick  tock  @1000",
    ]


def test_a_record_that_a_step_drops_is_counted_where_it_came_in():
    app = App("a")
    app.stream("in", key=str, value=str).group_by_key().count(name="c").to_stream().to("out")
    assert play(app, ("in", None, "v", 1), ("in", None, "w", 2)).splitlines() == [
        "in  None  v  @1",
        "  (1 dropped)",
        "in  None  w  @2",
        "  (1 dropped)",
    ]


def test_topics_of_patterns_of_global_tables_and_chosen_ones():
    app = App("a")
    names = app.global_table("names", key=str, value=str)
    numbers = app.stream(re.compile("numbers-.*"), key=str, value=int)
    named = numbers.join(names, lambda n, name: f"{name} {n}", key_fn=lambda key, _: key, value=str)
    named.to(lambda text: f"out-{text[0]}")
    assert cells(play(app, ("names", "a", "Ann", 1), ("numbers-x", "a", 7, 2))) == [
        ["names", "a", "Ann", "@1"],
        ["numbers-x", "a", "7", "@2"],
        ["out-A", "a", "Ann", "7", "@2"],
    ]


def test_dead_letters_are_shown_as_they_came():
    settings = {"errors_dead_letter_queue_topic_name": "dead", "processing_exception_handler": "dead_letter"}
    app = App("a", **settings)
    app.stream("in", key=str, value=str).map_values(int).to("out")
    assert cells(play(app, ("in", "k", "no number", 1)))[1][:4] == ["dead", "b'k'", "b'no", "number'"]


def test_a_topology_by_hand_and_settings_over_those_of_an_application():
    topology = Topology().add_source("in", "in", key=str).add_sink("out", "out", "in", key=str, value=bytes)
    assert cells(play(topology, ("in", "k", b"v", 1)))[1] == ["out", "k", "b'v'", "@1"]
    app = App("a")
    app.stream("in").to("out")
    assert cells(
        play(app, ("in", "k", 5, 1), config={"default_key_serde": str, "default_value_serde": int})
    ) == [
        ["in", "k", "5", "@1"],
        ["out", "k", "5", "@1"],
    ]


def test_each_call_begins_anew():
    app = App("a")
    app.stream("in", key=str, value=str).group_by_key().count(name="c").to_stream().to("out")
    assert play(app, ("in", "k", "v", 1)) == play(app, ("in", "k", "v", 1))


def test_a_step_of_another_shape_is_an_error():
    app = App("a")
    app.stream("lines").to("out")
    with pytest.raises(TypeError, match=r"a step is \(topic, key, value, timestamp\)"):
        play(app, ("lines", b"value"))


def test_a_topic_that_nobody_reads_is_an_error():
    app = App("a")
    app.stream("lines").to("out")
    with pytest.raises(TopicError, match="no source reads topic 'line'"):
        play(app, ("line", None, b"", 1))


def test_a_time_may_be_a_datetime() -> None:
    app = App("a")
    app.stream("in", key=str, value=str).to("out")
    moment = datetime(2027, 1, 15, 8, tzinfo=UTC)
    assert play(app, ("in", "k", "v", moment)) == play(app, ("in", "k", "v", 1_800_000_000_000))


def test_another_time_is_refused_with_what_may_be_given() -> None:
    app = App("a")
    app.stream("in", key=str, value=str).to("out")
    with pytest.raises(TypeError, match="'noon' is not a time: give a datetime"):
        play(app, ("in", "k", "v", "noon"))
