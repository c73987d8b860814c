"""An exactly-once application goes from Java to us and back, each killed or frozen with an open transaction: nothing is
lost or twice, whether who takes over has state of its own or none, and what whoever wakes up has begun is refused."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.interop.java_side import JavaSide
from tests.interop.java_side import why_not as no_java
from tests.kafka.exactly_once.word_counts import APPLICATION, READ, WordCounts
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import eventually, freeze

pytestmark = pytest.mark.slow

#: Java waits for the end of our transaction by its time; ours must not need to wait for Java's.
OURS = {"transaction_timeout_ms": 3_000, "commit_interval_ms": 2_000}
JAVAS = {
    "processing.guarantee": "exactly_once_v2",
    "commit.interval.ms": "2000",
    "producer.transaction.timeout.ms": "600000",
    "consumer.session.timeout.ms": "3000",
    "consumer.heartbeat.interval.ms": "500",
}


@pytest.fixture
def words(cluster: Cluster) -> Iterator[WordCounts]:
    reason = no_java()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    words = WordCounts(cluster, seed=5, partitions=2)
    yield words
    words.kill_all()


def open_transactions(words: WordCounts) -> bool:
    admin, repartition = words.cluster.admin, words.cluster.partitions(READ[1])
    return admin.end_offsets(repartition) != admin.stable_end_offsets(repartition)


def frozen_with_an_open_transaction(words: WordCounts, process) -> None:
    """Freeze a process after its first commit, while a transaction of its is open."""
    admin = words.cluster.admin
    eventually(lambda: READ[1] in admin.partition_counts(), "its topics are there")
    words.write(500)

    def written_and_open() -> bool:
        words.write(20)
        return open_transactions(words)

    def stays_open() -> bool:
        """Nothing that was under way when the process was stopped ends the transaction."""
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            if not open_transactions(words):
                return False
        return True

    def stopped_with_an_open_transaction() -> bool:
        """Shortly after a commit, which leaves most of the interval until the next one ends the transaction."""
        before = words.cluster.committed(APPLICATION)
        words.write(20)
        eventually(lambda: words.cluster.committed(APPLICATION) != before, "a commit")
        eventually(written_and_open, "an open transaction")
        freeze(process.pid)
        if stays_open():
            return True
        process.send_signal(signal.SIGCONT)
        return False

    eventually(stopped_with_an_open_transaction, "a process stopped with an open transaction")


def killed_with_an_open_transaction(words: WordCounts, process) -> None:
    frozen_with_an_open_transaction(words, process)
    process.kill()
    process.wait()
    assert open_transactions(words)
    words.cluster.remove_members(APPLICATION)


def started_java(server: KafkaServer, path: Path, state: Path) -> JavaSide:
    java = JavaSide(server.bootstrap_servers, path / "java.log")
    java.start("words", APPLICATION, state, **JAVAS)
    return java


@pytest.mark.parametrize("state", ["kept", "wiped"])
def test_a_count_goes_to_and_fro_between_processes_that_are_killed(
    words: WordCounts, server: KafkaServer, tmp_path: Path, state: str
):
    # Who keeps state finds it in the second turn; without any the first one shows it already.
    for turn in range(2 if state == "kept" else 1):
        place = "state" if state == "kept" else f"state-{turn}"
        java = started_java(server, tmp_path, tmp_path / f"java-{place}")
        with closing(java):
            killed_with_an_open_transaction(words, java._process)
        ours = words.start(f"ours-{place}", **OURS)
        killed_with_an_open_transaction(words, ours)
    with closing(started_java(server, tmp_path, tmp_path / "java-state")) as java:
        words.write(200)
        words.done()
        java.stop(APPLICATION)
    words.check()


def test_a_transaction_of_javas_is_fenced_by_us(words: WordCounts, server: KafkaServer, tmp_path: Path):
    """Its own time for transactions is ten minutes: only fencing can have ended the open one."""
    with closing(started_java(server, tmp_path, tmp_path / "java")) as java:
        frozen_with_an_open_transaction(words, java._process)
        words.cluster.remove_members(APPLICATION)
        words.start("ours", **OURS)
        words.done()
        assert not open_transactions(words)
        java._process.send_signal(signal.SIGCONT)
        log = tmp_path / "java.log"
        eventually(
            lambda: "InvalidProducerEpoch" in log.read_text() or "Fenced" in log.read_text(), "refused"
        )
        words.write(200)
        words.done()
    words.stop_all()
    words.check()


def test_a_transaction_of_ours_is_refused_once_java_has_the_tasks(
    words: WordCounts, server: KafkaServer, tmp_path: Path
):
    """Java does not fence: it waits until the time of the transaction is over. In a group of Java's we cannot be, so
    our process ends, and says why."""
    ours = words.start("ours", **OURS)
    frozen_with_an_open_transaction(words, ours)
    words.cluster.remove_members(APPLICATION)
    with closing(started_java(server, tmp_path, tmp_path / "java")) as java:
        words.done()
        assert not open_transactions(words)
        ours.send_signal(signal.SIGCONT)
        eventually(lambda: ours.poll() is not None, "our process has ended")
        assert "The group refuses this member" in words.printed()
        assert "Java's Kafka Streams" in words.printed()
        words.write(200)
        words.done()
        java.stop(APPLICATION)
    words.check()
