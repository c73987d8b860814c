"""A process that sleeps in the middle of its work, until others have its tasks and have deleted what they have
processed, joins the group again: nothing is missing, so nothing is an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.app import App
from pystreams.broker.embedded.consumer import EmbeddedConsumer
from pystreams.ids import TopicPartition
from pystreams.runtime.client_state import ClientState
from tests.live.support import Log, caught_up, consumer_of, eventually, running

REPARTITION = TopicPartition("sleeping-counts-repartition", 0)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """Members that do nothing for two seconds are removed."""
    with closing(
        Log(tmp_path, session_timeout_ms=1_500, heartbeat_interval_ms=200, max_poll_interval_ms=2_000)
    ) as log:
        yield log


def counting(log: Log, process: str) -> App:
    app = log.app("sleeping", state_dir=log.path / process, repartition_purge_interval_ms=200)
    regrouped = app.stream("in", key=str, value=int).group_by(lambda key, _: key, key=str)
    regrouped.count(name="counts").to_stream().to("out")
    return app


def test_it_goes_on_as_a_member(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.create("in", "out")
    log.write("in", [("k", 1, number) for number in range(10)])
    sleeper = log.start(counting(log, "one"))
    caught_up(sleeper)
    chosen, wake = consumer_of(sleeper), threading.Event()
    assert isinstance(chosen, EmbeddedConsumer)
    asleep = threading.Event()
    poll = EmbeddedConsumer.poll

    def sleep_first(self: EmbeddedConsumer, timeout_ms: float) -> object:
        if self is chosen and not wake.is_set():
            asleep.set()
            wake.wait(120)
        return poll(self, timeout_ms)

    monkeypatch.setattr(EmbeddedConsumer, "poll", sleep_first)
    try:
        assert asleep.wait(60)
        other = log.start(counting(log, "two"))
        running(other)
        log.write("in", [("k", 1, number) for number in range(10, 20)])
        eventually(lambda: log.admin.beginning_offsets([REPARTITION])[REPARTITION] >= 20, "it is purged")
    finally:
        wake.set()
    other.close()
    log.write("in", [("k", 1, number) for number in range(20, 30)])
    eventually(lambda: sleeper.failure or log.table("out") == {"k": 30}, "the sleeper goes on")
    assert sleeper.failure is None
    assert sleeper.state is ClientState.RUNNING
