"""What a former owner writes late, having been frozen, does not get into anybody's state, and it sets nobody right."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually


def counting(cluster: Cluster, **settings):
    app = cluster.app("counting", **settings)
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    return app


@pytest.mark.parametrize("written_with", ["the next commit", "no commit"])
def test_a_late_write_to_a_changelog_is_set_right(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, written_with: str
):
    cluster.create("in", "out")
    cluster.write("in", [(f"k{i % 3}", i, i + 1) for i in range(30)])
    streams = cluster.start(counting(cluster))
    caught_up(streams)
    changelog = "counting-counts-changelog"
    # As a zombie does: what was true long ago.
    cluster.write(changelog, [("k0", 1, 1), ("k1", 10, 29)])
    if written_with == "the next commit":
        cluster.write("in", [("k2", 0, 31)])
        eventually(lambda: "are not this task's" in caplog.text, "the late write is noticed")
        caught_up(streams)
    with caplog.at_level(logging.WARNING):
        assert streams.close(30_000)
    assert "1 of 2 keys" in caplog.text or "1 of 3 keys" in caplog.text, caplog.text
    assert cluster.table(changelog)["k0"] == 10
    # Somebody without state takes over.
    cluster.write("in", [("k0", 0, 32)])
    streams = cluster.start(counting(cluster, state_dir=cluster.path / "elsewhere"))
    caught_up(streams)
    assert cluster.table("out")["k0"] == 11


def test_who_was_replaced_while_it_hung_leaves_its_successors_changelog_alone(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
):
    cluster.create("in", "out")
    cluster.write("in", [(f"k{i % 3}", i, i + 1) for i in range(30)])
    # It does not hear in time that it is not a member any more.
    deaf = cluster.broker_with(session_timeout_ms=120_000, heartbeat_interval_ms=60_000)
    cluster.broker, broker = deaf, cluster.broker
    hung = cluster.start(counting(cluster))
    caught_up(hung)
    cluster.broker = broker
    begun, go_on = threading.Event(), threading.Event()

    def hang(_tasks) -> None:
        begun.set()
        assert go_on.wait(60)

    (thread,) = hung._threads
    thread.call(hang)
    assert begun.wait(30)
    cluster.remove_members("counting")
    successor = cluster.start(counting(cluster, state_dir=cluster.path / "elsewhere"))
    cluster.write("in", [(f"k{i % 3}", i, i + 31) for i in range(30)])
    caught_up(successor)
    assert successor.close(30_000)
    closing = threading.Thread(target=hung.close, args=(30_000,))
    with caplog.at_level(logging.WARNING):
        closing.start()
        eventually(thread._requests.stop.is_set, "it is to stop")
        go_on.set()
        closing.join()
    assert "stopped without a last commit" in caplog.text
    assert hung.failure is None
    assert cluster.table("counting-counts-changelog") == {"k0": 20, "k1": 20, "k2": 20}


#: A stream thread's producer, frozen while its records wait for their batch. It prints how its commit ends.
FROZEN = """
import os, signal, sys
from pystreams.errors import DeliveryError
from tests.kafka.support import connect

broker = connect(
    sys.argv[1], session_timeout_ms=11_000, heartbeat_interval_ms=1_000,
    client_settings={"producer.linger.ms": 9_900, "producer.request.timeout.ms": 1_000},
)
producer = broker.producer("thread", "thread-id")
producer.send("log", 0, b"k", b"in time", 1, ())
producer.commit({}, None)
producer.send("log", 0, b"k", b"late", 2, ())
os.kill(os.getpid(), signal.SIGSTOP)
try:
    producer.commit({}, None)
except DeliveryError as error:
    print(error.what)
producer.close()
broker.close()
"""


def test_records_that_waited_in_a_process_frozen_for_a_session_are_never_sent(cluster: Cluster):
    cluster.create("log")
    command = [sys.executable, "-c", FROZEN, cluster.bootstrap_servers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            _, status = os.waitpid(process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            time.sleep(11.5)  # longer than its session
            process.send_signal(signal.SIGCONT)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert output.strip() == "A record could not be written in time"
    assert [record.value for record in cluster.read("log", value=bytes)] == [b"in time"]
