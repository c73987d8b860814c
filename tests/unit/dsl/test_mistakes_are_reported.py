"""What a program gets wrong is reported where it is written, with what to do instead."""

from __future__ import annotations

import logging
import re
import uuid
from datetime import timedelta
from typing import Any

import pytest

from pystreams import (
    App,
    Processor,
    PunctuationType,
    Serde,
    Stores,
    TimeWindowedSerde,
    Topology,
    TopologyError,
    TopologyTestDriver,
)
from pystreams.errors import ProcessingError, SerializationError
from pystreams.testing import play


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: Stores.window_store("s", str, str, size="5", retention=9), "'5' is not a duration"),
        (lambda: Stores.window_store("s", str, str, size=5, retention=9.5), "9.5 is not a duration"),
        (lambda: Stores.session_store("s", str, str, retention=True), "True is not a duration"),
        (lambda: Stores.lru_map("s", str, str, max_entries="5"), "'5' is not a number of entries"),
        (lambda: Stores.lru_map("s", str, str, max_entries=-1), "-1 is not a number of entries"),
        (lambda: App("a").add_state_store("seen"), "'seen' does not describe a store"),
        (lambda: App("a").add_global_store("seen", "t", Processor), "'seen' does not describe a store"),
        (lambda: Topology().add_state_store("seen"), "'seen' does not describe a store"),
        (lambda: App("a").stream("t").process(Processor, stores=[3]), "3 does not describe a store"),
        (lambda: App("a").table(["t", "u"]), "a table is read from one topic"),
        (lambda: App("a").table(re.compile("t.*")), "a table is read from one topic"),
        (lambda: Serde.of(str.encode, "utf-8"), "'utf-8' is not a function"),
        (lambda: TimeWindowedSerde(str, timedelta(seconds=1)), "is not the size of a window"),
        (lambda: TopologyTestDriver(App("a").stream("t")), "KStream is not an application"),
    ],
    ids=range(14),
)
def test_a_wrong_argument(make, told):
    with pytest.raises(TopologyError, match=told):
        make()


def tables(one: Any, two: Any) -> tuple[Any, Any]:
    app = App("a")
    return app.table("one", key=one, value=str), app.table("two", key=two, value=str)


@pytest.mark.parametrize("one, two", [(str, int), (int, str), (str, bytes), (bool, int), (uuid.UUID, str)])
@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_keys_that_never_meet_in_a_join_of_tables(one, two, method):
    left, right = tables(one, two)
    with pytest.raises(TopologyError, match="keys of different types"):
        getattr(left, method)(right, lambda x, y: x)


@pytest.mark.parametrize("method", ["join", "left_join"])
def test_keys_that_never_meet_in_a_join_of_a_stream_with_a_table(method):
    app = App("a")
    stream, table = app.stream("s", key=str, value=str), app.table("t", key=int, value=str)
    with pytest.raises(TopologyError, match=r"str of KSTREAM-SOURCE-0000000000, int of KTABLE-SOURCE"):
        getattr(stream, method)(table, lambda x, y: x)
    numbered = stream.select_key(len)
    getattr(numbered, method)(table, lambda x, y: x)


def test_keys_of_ones_own_serdes_may_meet():
    as_text = Serde.of(lambda n: str(n).encode(), int)
    left, right = tables(as_text, str)
    left.join(right, lambda x, y: x)
    left, right = tables(str, int)
    left.join(right, lambda x, y: x, foreign_key=int)


@pytest.mark.parametrize("table", [{}, {"name": "t", "history": 10}])
def test_a_row_that_is_looked_up_by_a_key_of_another_type(table):
    """The table was not told the type of its keys, so they are bytes."""
    app = App("a")
    app.stream("in", key=str, value=str).join(app.table("t", value=str, **table), lambda x, y: x).to("out")
    with pytest.raises(
        ProcessingError, match=r"a key of type str does not fit store t.*, whose keys are bytes"
    ):
        play(app, ("in", "k", "v", 1))


def test_a_store_that_is_asked_for_a_key_of_another_type():
    class Looks(Processor[str, str, str, str]):
        def process(self, record):
            self.context.store("s").get(5)

    app = App("a")
    stores = [Stores.key_value_store("s", str, int)]
    app.stream("in", key=str, value=str).process(Looks, stores=stores).to("out")
    with pytest.raises(ProcessingError, match="a key of type int does not fit store s, whose keys are str"):
        play(app, ("in", "k", "v", 1))


def forwarding(what: Any) -> App:
    class Forwards(Processor[str, str, str, str]):
        def process(self, record):
            self.context.forward(what)

    app = App("a")
    app.stream("in", key=str, value=str).process(Forwards).to("out")
    return app


def test_what_is_forwarded_is_a_record():
    with pytest.raises(ProcessingError, match="forwarded a tuple, which is not a record"):
        play(forwarding(("k", "v")), ("in", "k", "v", 1))


def test_what_is_scheduled_has_an_interval():
    class Ticks(Processor[str, str, str, str]):
        def init(self, context):
            context.schedule("5s", PunctuationType.STREAM_TIME, lambda _: None)

        def process(self, record):
            """Nothing."""

    app = App("a")
    app.stream("in", key=str, value=str).process(Ticks).to("out")
    with pytest.raises(ProcessingError, match="scheduled a punctuator every 5s"):
        play(app, ("in", "k", "v", 1))


def test_what_is_piped_is_of_the_topics_types():
    app = App("a")
    app.stream("in", key=str, value=str).to("out")
    with TopologyTestDriver(app) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        with pytest.raises(SerializationError, match="5 cannot be serialized as a value of type str"):
            topic.pipe_input("k", 5)
        with pytest.raises(SerializationError, match="5 cannot be serialized as a key of type str"):
            topic.pipe_input(5, "v")
        with pytest.raises(SerializationError, match="headers must be pairs"):
            topic.pipe_input("k", "v", headers={"a": b"b"})
        untold = driver.create_input_topic("in")
        with pytest.raises(SerializationError, match="'v' cannot be serialized as a value of type bytes"):
            untold.pipe_input("v")


def test_a_method_of_an_object_built_in_is_a_function_like_any_other(caplog):
    """It has no module of its own."""
    app = App("a")
    names, homes = app.table("names", key=str, value=str), app.table("homes", key=str, value=str)
    names.join(homes, "{} of {}".format).to_stream().to("out")
    with caplog.at_level(logging.WARNING):
        told = play(app, ("names", "1", "Ann", 1), ("homes", "1", "Rome", 2))
    assert told.splitlines()[-1].split(maxsplit=2) == ["out", "1", "Ann of Rome  @2"]
    assert caplog.records == []


def test_two_repartition_topics_of_one_name_are_to_be_named_apart():
    """Both would take that of the store."""
    app = App("a")
    one, two = (app.stream(topic, key=str, value=str) for topic in ("one", "two"))
    grouped = one.group_by(str.upper).cogroup(lambda text, value: text + value)
    grouped.cogroup(two.group_by(str.lower), lambda text, value: text + value).aggregate(str, name="texts")
    with pytest.raises(TopologyError, match="texts-repartition-filter has already been added") as caught:
        app.build()
    assert "repartition=" in caught.value.hint


def test_an_initializer_that_is_no_function_is_reported_with_what_is_wanted():
    grouped = App("a").stream("t", key=str, value=str).group_by_key()
    with pytest.raises(TopologyError, match="give it a function of no arguments"):
        grouped.aggregate([], lambda words, word: [*words, word])
