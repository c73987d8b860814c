"""A partition that is silently no longer read goes on, and where a thread hangs is shown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from pystreams.broker.embedded.consumer import EmbeddedConsumer
from pystreams.broker.embedded.producer import EmbeddedProducer
from pystreams.ids import TopicPartition
from pystreams.processor import Processor
from pystreams.record import Record
from pystreams.runtime.streams import Streams
from pystreams.state.stores.factory import Stores
from tests.live.restore_kit import Listener, counting
from tests.live.support import Log, caught_up, consumer_of, eventually, running

SILENT = TopicPartition("in", 1)


def test_a_partition_that_is_silently_no_longer_read_goes_on(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log.create("in", "out", partitions=2)
    app = log.app("reading", stall_timeout_ms=500)
    app.stream("in", key=str, value=int).to("out")
    streams = log.start(app)
    caught_up(streams)
    (thread,) = streams._threads
    consumer = consumer_of(streams)
    assert isinstance(consumer, EmbeddedConsumer)
    # It loses the partition as librdkafka has done: without an error, until it is assigned again.
    eventually(lambda: consumer._readings, "it reads")
    thread.call(lambda tasks: consumer.pause([SILENT])).result(30)
    for partition in (0, 1):
        log.write("in", [("k", number, number) for number in range(100)], partition=partition)
    caught_up(streams)
    assert len(log.read("out")) == 200
    assert "nothing has been read from in-1" in caplog.text


@pytest.fixture
def silent_reader(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Has the first consumer of a topic lose what it is assigned, as librdkafka has done: without an error, until it is
    assigned again."""

    def lose(topic: str) -> None:
        assign = EmbeddedConsumer.assign
        lost: list[TopicPartition] = []

        def assign_and_lose(self: EmbeddedConsumer, positions: Mapping[TopicPartition, int]) -> None:
            assign(self, positions)
            if not lost:
                lost.extend(partition for partition in positions if partition.topic == topic)
                self.pause(lost)

        monkeypatch.setattr(EmbeddedConsumer, "assign", assign_and_lose)

    return lose


def test_a_restore_that_is_silently_no_longer_read_goes_on(
    log: Log, silent_reader: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    log.create("in", "out")
    log.write("in", [(f"k{number % 10}", 1, number) for number in range(100)])

    def start(folder: str) -> Streams:
        app = log.app("counting", stall_timeout_ms=500, state_dir=log.path / folder)
        app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
        return log.start(app)

    first = start("one")
    caught_up(first)
    first.close()
    silent_reader("counting-counts-changelog")
    again = start("another")
    caught_up(again)
    assert again.store("counts").get("k7").value == 10
    assert "nothing has been read from counting-counts-changelog-0" in caplog.text


def test_a_global_table_that_is_silently_no_longer_read_goes_on(
    log: Log, silent_reader: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    log.create("rows", "in", "out")
    log.write("rows", [("k", 7, 0)])
    app = log.app("joining", stall_timeout_ms=500)
    rows = app.global_table("rows", key=str, value=int, name="rows")
    joined = app.stream("in", key=str, value=int).join(rows, int.__add__, key_fn=str, value=int)
    joined.to("out")
    silent_reader("rows")
    streams = log.start(app)
    assert streams.store("rows").get("k").value == 7
    assert "nothing has been read from rows-0" in caplog.text


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    """What hangs waits for this."""
    event = threading.Event()
    yield event
    event.set()


def reported(caplog: pytest.LogCaptureFixture, thread: str, function: str) -> list[str]:
    """What has been said of a thread that hangs in a function. On a busy machine others may take long for something,
    too. ``thread`` is the end of its name."""
    said = [text for text in caplog.messages if f"{thread}] the thread has been in the same round" in text]
    return [text for text in said if f", in {function}\n" in text]


def test_a_function_that_hangs_is_shown_with_its_stack(
    log: Log, go_on: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    log.create("in")

    def hangs_here(value: int) -> None:
        go_on.wait(60)

    app = log.app("hanging", stall_timeout_ms=300)
    app.stream("in", key=str, value=int).foreach(hangs_here)
    streams = log.start(app)
    running(streams)
    log.write("in", [("k", 1, 1)])
    eventually(lambda: "in hangs_here" in caplog.text, "the stack is logged")
    go_on.set()
    caught_up(streams)
    assert caplog.text.count("has been at work on one record") == 1


def test_a_commit_that_hangs_is_shown_with_its_stack(
    log: Log, monkeypatch: pytest.MonkeyPatch, go_on: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    log.create("in", "out")
    log.write("in", [("k", 1, 1)])
    commit = EmbeddedProducer.commit

    def hangs_in_the_commit(self: EmbeddedProducer, *given: Any, **named: Any) -> Any:
        go_on.wait(60)
        return commit(self, *given, **named)

    monkeypatch.setattr(EmbeddedProducer, "commit", hangs_in_the_commit)
    app = log.app("hanging", stall_timeout_ms=300)
    app.stream("in", key=str, value=int).to("out")
    streams = log.start(app)
    eventually(lambda: "in hangs_in_the_commit" in caplog.text, "the stack is logged")
    go_on.set()
    caught_up(streams)
    assert len(reported(caplog, "-StreamThread-1", "hangs_in_the_commit")) == 1


def test_a_restore_that_hangs_is_shown_with_its_stack(
    log: Log, go_on: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    log.create("in", "out")
    log.write("in", [("k", 1, 1)])

    class Hanging(Listener):
        def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None:
            go_on.wait(60)

    def start(folder: str) -> Streams:
        app = counting(log, stall_timeout_ms=300, state_dir=log.path / folder)
        return log.start(app, prepare=lambda streams: streams.set_restore_listener(Hanging()))

    go_on.set()
    first = start("one")
    caught_up(first)
    first.close()
    go_on.clear()
    again = start("another")
    eventually(lambda: reported(caplog, "-restore", "on_restore_end"), "the stack is logged")
    go_on.set()
    caught_up(again)
    assert len(reported(caplog, "-restore", "on_restore_end")) == 1


@pytest.mark.parametrize("hangs", ["while it is filled", "later"])
def test_a_global_store_that_hangs_is_shown_with_its_stack(
    log: Log, go_on: threading.Event, caplog: pytest.LogCaptureFixture, hangs: str
) -> None:
    log.create("rows", "in")

    class HangsHere(Processor[str, int, None, None]):
        def process(self, record: Record[str, int]) -> None:
            go_on.wait(60)
            self.context.store("rows").put(record.key, record.value)

    app = log.app("filling", stall_timeout_ms=300)
    rows = Stores.key_value_store("rows", str, int)
    app.add_global_store(rows, "rows", HangsHere, key=str, value=int)
    app.stream("in").foreach(lambda value: None)
    started: list[Streams] = []
    # A start waits until global stores are filled.
    starting = threading.Thread(target=lambda: started.append(log.start(app)))
    if hangs == "later":
        starting.start()
        starting.join()
    log.write("rows", [("k", 7, 0)])
    if hangs != "later":
        starting.start()
    eventually(lambda: reported(caplog, "-GlobalStreamThread", "process"), "the stack is logged")
    go_on.set()
    starting.join()
    eventually(lambda: started[0].store("rows").get("k") == 7, "the record is there")
    assert len(reported(caplog, "-GlobalStreamThread", "process")) == 1
