"""The broker goes away and comes back: an application goes on by itself, and nothing is lost.

``make trouble`` does the same for longer, and with a cluster of three.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing

import pytest

from pystreams.broker.kafka.coordinator import StreamsCoordinator
from pystreams.errors import BrokerUnavailableError
from pystreams.runtime.streams import Streams
from pystreams.runtime.tasks import changelog_guard
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster, connect
from tests.kafka.trouble_support import Counting
from tests.live.support import caught_up, eventually, freeze

pytestmark = [
    pytest.mark.slow,
    # kafka-python leaves sockets of refused connections to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


def test_a_broker_that_is_killed_and_comes_back_is_survived(fragile_server: KafkaServer, fragile: Cluster):
    counting = Counting(fragile)
    counting.write(2_000)
    streams = counting.start()
    caught_up(streams)
    for away_s in (0.0, 8.0):
        counting.write(5_000)
        fragile_server.kill()
        time.sleep(away_s)  # the broker is away for a while: that is what this test is about
        fragile_server.start()
        counting.write(2_000)
        counting.check(streams)
    assert streams.close(30_000)


def test_an_idle_application_whose_broker_is_away_answers_and_closes_and_starts_again_while_its_broker_does(
    fragile_server: KafkaServer, fragile: Cluster, monkeypatch: pytest.MonkeyPatch
):
    # What it asks the broker now and then, it asks all the time.
    monkeypatch.setattr(changelog_guard, "CHECK_INTERVAL_MS", 100)
    fragile.create("in", "out", partitions=2)
    app = fragile.app("idle", session_timeout_ms=20_000, repartition_purge_interval_ms=100)
    words = app.stream("in", key=str, value=int).group_by(lambda key, _: key, key=str)
    words.count(name="counts").to_stream().to("out")
    fragile.write("in", [("k", i, i + 1) for i in range(10)])
    streams = fragile.start(app)
    caught_up(streams)
    fragile_server.kill()
    waited_s = []
    for _ in range(5):
        started = time.monotonic()
        assert streams.store("counts").get("k").value == 10
        waited_s.append(time.monotonic() - started)
    assert max(waited_s) < 15, waited_s
    # As if the coordinator had not been heard of for a session: who has nothing to commit need not ask it.
    with monkeypatch.context() as patched:
        patched.setattr(StreamsCoordinator, "doubtful", True)
        started = time.monotonic()
        assert streams.close(60_000)
        assert time.monotonic() - started < 40
    assert streams.failure is None
    back = threading.Thread(target=fragile_server.start)
    back.start()
    try:
        # Its whole start falls into the broker's: told to be patient for as long as that may take.
        broker = eventually(lambda: _connected(fragile_server), "connected")
    finally:
        back.join()
    with closing(broker):
        again = Streams(app, broker=broker)
        again.start()
        try:
            fragile.write("in", [("k", i, i + 1) for i in range(10, 30)])
            caught_up(again)
            assert again.store("counts").get("k").value == 30
        finally:
            assert again.close(30_000)


def test_a_coordinator_that_is_silent_for_longer_than_the_session_is_survived(
    fragile_server: KafkaServer, fragile: Cluster
):
    counting = Counting(fragile, session_timeout_ms=3_000, heartbeat_interval_ms=200)
    counting.write(2_000)
    streams = counting.start()
    caught_up(streams)
    counting.write(5_000)
    freeze(fragile_server.pid)
    try:
        time.sleep(6.0)  # connections stay open and nothing answers: that is what this test is about
    finally:
        os.kill(fragile_server.pid, signal.SIGCONT)
    counting.write(2_000)
    counting.check(streams)
    assert streams.close(30_000)


def _connected(server: KafkaServer):
    try:
        return connect(server.bootstrap_servers, connect_timeout_s=10.0)
    except BrokerUnavailableError:
        return None
