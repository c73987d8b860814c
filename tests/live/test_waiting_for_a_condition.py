"""``Streams.wait_for`` ends soon after its condition is true, whether or not the client's state has changed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from pystreams import Streams
from tests.live.support import TIMEOUT_S, Log, running


def test_a_condition_may_become_true_without_a_change_of_state(log: Log) -> None:
    log.create("in")
    app = log.app("waiting")
    seen: list[int] = []
    app.stream("in", key=str, value=int).foreach(lambda _, value: seen.append(value))
    streams = log.start(app)
    running(streams)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(streams.wait_for, lambda: seen == [1, 2])
        log.write("in", [("k", 1, 1), ("k", 2, 2)])
        assert waiting.result(TIMEOUT_S)


def test_a_condition_that_stays_false_is_given_up_in_time(log: Log) -> None:
    log.create("in")
    app = log.app("waiting")
    app.stream("in", key=str, value=int).foreach(lambda _, __: None)
    streams: Streams = log.start(app)
    assert not streams.wait_for(lambda: False, 300)
