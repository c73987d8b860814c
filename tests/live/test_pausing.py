"""A client that is paused processes nothing and calls no punctuators; everything else goes on."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest

from pystreams import App, Processor, PunctuationType, Streams
from pystreams.runtime.client_state import ClientState
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually, running


def counting(log: Log, **settings) -> App:
    app = log.app("counting", commit_interval_ms=50, **settings)
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    return app


def write(log: Log, records: int) -> None:
    log.write("in", [(f"k{number % 10}", 1, number) for number in range(records)])


def stays_as_it_is(streams: Streams) -> None:
    """Several rounds, and none processes a record."""
    before = streams.progress().records
    end = time.monotonic() + 0.5
    eventually(lambda: time.monotonic() > end or streams.progress().records > before)
    assert streams.progress().records == before


@pytest.mark.both_logs
def test_a_paused_client_processes_nothing_and_goes_on_where_it_was(log: Log) -> None:
    log.create("in", "out", partitions=2)
    write(log, 1_000)
    streams = log.start(counting(log))
    caught_up(streams)
    streams.pause()
    assert streams.is_paused
    write(log, 500)
    eventually(lambda: (streams.progress().lag or 0) >= 500, "the lag is known")
    stays_as_it_is(streams)
    assert streams.state is ClientState.RUNNING
    assert not streams.caught_up()
    streams.resume()
    assert not streams.is_paused
    caught_up(streams)
    assert log.table("out") == {f"k{digit}": 150 for digit in range(10)}


def test_what_was_processed_is_committed_while_paused(log: Log) -> None:
    log.create("in", "out")
    streams = log.start(counting(log))
    running(streams)
    write(log, 100)
    eventually(lambda: streams.progress().records == 100, "all is processed")
    streams.pause()
    eventually(lambda: log.all_committed("counting", "in"), "all is committed")


def test_no_punctuator_is_called_while_paused(log: Log) -> None:
    log.create("in")
    calls: list[int] = []
    app = log.app("punctual")

    class Ticking(Processor):
        def init(self, context) -> None:
            context.schedule(timedelta(milliseconds=20), PunctuationType.WALL_CLOCK_TIME, calls.append)

        def process(self, record) -> None: ...

    app.stream("in", key=str, value=int).process(Ticking)
    streams = log.start(app)
    eventually(lambda: calls, "it is called")
    streams.pause()
    # The round that was under way may have called it once more.
    assert streams._threads[0].call(lambda tasks: None).result(TIMEOUT_S) is None
    before, rounds = len(calls), streams.metrics.total("poll")
    time.sleep(0.3)  # nothing can be waited for: nothing is to happen
    assert len(calls) == before
    # A punctuator that is due does not make the thread busy.
    assert streams.metrics.total("poll") - rounds < 100
    streams.resume()
    eventually(lambda: len(calls) > before, "it is called again")


def test_a_client_that_is_paused_before_its_start_gets_ready_and_waits(log: Log) -> None:
    log.create("in", "out")
    write(log, 100)
    streams = log.start(counting(log), prepare=Streams.pause)
    running(streams)
    stays_as_it_is(streams)
    assert streams.progress().records == 0
    streams.resume()
    caught_up(streams)


def test_stores_are_restored_while_the_client_is_paused(log: Log) -> None:
    log.create("in", "out")
    write(log, 1_000)
    streams = log.start(counting(log))
    caught_up(streams)
    assert streams.close(30_000)
    again = log.start(counting(log, state_dir=log.path / "elsewhere"), prepare=Streams.pause)
    running(again)
    assert {key for key, _ in again.store("counts").all()} == {f"k{digit}" for digit in range(10)}


def test_a_paused_client_takes_part_in_rebalances_and_others_go_on(log: Log) -> None:
    log.create("in", "out", partitions=4)
    first = log.start(counting(log))
    running(first)
    first.pause()
    second = log.start(counting(log))
    shares = lambda: [  # noqa: E731
        sum(len(thread.tasks) for thread in client.progress().threads) for client in (first, second)
    ]
    eventually(lambda: shares() == [2, 2], "two tasks each")
    running(second)
    write(log, 1_000)
    eventually(lambda: second.progress().records > 0 and second.progress().lag == 0, "the other one goes on")
    assert first.progress().records == 0
    first.resume()
    caught_up(first)
    assert log.table("out") == {f"k{digit}": 100 for digit in range(10)}


def test_a_thread_that_is_added_to_a_paused_client_is_paused(log: Log) -> None:
    log.create("in", "out", partitions=2)
    streams = log.start(counting(log))
    running(streams)
    streams.pause()
    assert streams.add_stream_thread() is not None
    eventually(
        lambda: [len(thread.tasks) for thread in streams.progress().threads] == [1, 1], "one task each"
    )
    running(streams)
    write(log, 100)
    stays_as_it_is(streams)
    closed = threading.Thread(target=streams.close)
    closed.start()
    closed.join(TIMEOUT_S)
    assert streams.state is ClientState.NOT_RUNNING
