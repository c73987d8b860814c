"""Who reads a store from outside, or moves cache from thread to thread, loses no cached result."""

from __future__ import annotations

import threading

import pytest

from pystreams.app import App
from pystreams.runtime.streams import Streams
from tests.live.support import Log, eventually, processed, running

KEYS = [f"k{i:03}" for i in range(100)]


@pytest.fixture
def failing() -> threading.Event:
    """While it is set, the step behind the store fails."""
    return threading.Event()


def summing(log: Log, failing: threading.Event, cache_bytes: int) -> App:
    def fail(value: int) -> None:
        if failing.is_set():
            raise ValueError("forwarded while nothing was processed")

    log.create("in", "out")
    app = log.app("summing", commit_interval_ms=600_000, statestore_cache_max_bytes=cache_bytes)
    sums = app.stream("in", key=str, value=int).group_by_key().reduce(lambda one, two: one + two, name="sums")
    sums.to_stream().peek(fail).to("out")
    log.write("in", [(key, 1, i) for i, key in enumerate(KEYS)])
    return app


def ends_well(log: Log, streams: Streams) -> None:
    streams.close()
    assert streams.failure is None
    assert log.table("out") == dict.fromkeys(KEYS, 1)


def test_a_query_evicts_nothing(log: Log, failing: threading.Event) -> None:
    streams = log.start(summing(log, failing, cache_bytes=2_000))
    processed(streams, len(KEYS))
    failing.set()
    assert [streams.store("sums").get(key).value for key in KEYS] == [1] * len(KEYS)
    failing.clear()
    ends_well(log, streams)


def test_a_smaller_share_of_the_cache_flushes_with_a_commit_and_fails_as_one(
    log: Log, failing: threading.Event
) -> None:
    app = summing(log, failing, cache_bytes=10_000)
    streams = log.start(app)
    processed(streams, len(KEYS))
    failing.set()
    streams.add_stream_thread()
    eventually(lambda: streams.finished, "the end")
    assert "forwarded while nothing was processed" in str(streams.failure)
    failing.clear()
    again = log.start(app)
    processed(again, len(KEYS))
    again.add_stream_thread()
    running(again)
    ends_well(log, again)
