"""A partition that is silently no longer read goes on, and a function that hangs is shown."""

from __future__ import annotations

import threading

import pytest

from pystreams.broker.embedded.consumer import EmbeddedConsumer
from pystreams.ids import TopicPartition
from tests.live.support import Log, caught_up, eventually, running

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
    assert thread._rounds is not None
    consumer = thread._rounds.clients.consumer
    assert isinstance(consumer, EmbeddedConsumer)
    # It loses the partition as librdkafka has done: without an error, until it is assigned again.
    eventually(lambda: consumer._readings, "it reads")
    thread.call(lambda tasks: consumer.pause([SILENT])).result(30)
    for partition in (0, 1):
        log.write("in", [("k", number, number) for number in range(100)], partition=partition)
    caught_up(streams)
    assert len(log.read("out")) == 200
    assert "nothing has been read from in-1" in caplog.text


def test_a_function_that_hangs_is_shown_with_its_stack(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    log.create("in")
    go_on = threading.Event()

    def hangs_here(value: int) -> None:
        go_on.wait(60)

    app = log.app("hanging", stall_timeout_ms=300)
    app.stream("in", key=str, value=int).foreach(hangs_here)
    streams = log.start(app)
    running(streams)
    log.write("in", [("k", 1, 1)])
    try:
        eventually(lambda: "in hangs_here" in caplog.text, "the stack is logged")
    finally:
        go_on.set()
    caught_up(streams)
    assert caplog.text.count("has been at work on one record") == 1
