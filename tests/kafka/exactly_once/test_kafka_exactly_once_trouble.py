"""Frozen processes, transactions that take too long, producers that are fenced: every count is written once, and no
process ends."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from pystreams.app import App
from pystreams.errors import BrokerUnavailableError, TransactionEndedError
from pystreams.runtime.streams import Streams
from tests.kafka.exactly_once.word_counts import APPLICATION, READ, WordCounts
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import caught_up, eventually, run_to_the_end, running
from tests.live.test_trouble import Faults, FaultyBroker

pytestmark = pytest.mark.slow

#: By default, transactions that are too old are looked for every ten seconds.
ATTENTIVE = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
#: How long a transaction may take, and a function that takes longer. These times are the subject, beside the task
#: timeout: whether a broker has ended a transaction does not end a function.
TRANSACTION_MS, HANG_S = 1_000, 3


@pytest.fixture(scope="module")
def mortal(server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker that may be killed. (``server`` is asked for because it knows whether Kafka can be had.)"""
    mortal = KafkaServer(tmp_path_factory.mktemp("mortal"), properties=ATTENTIVE)
    mortal.start()
    yield mortal
    mortal.stop()


@pytest.fixture
def cluster(mortal: KafkaServer, tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(mortal.bootstrap_servers, tmp_path)) as cluster:
        yield cluster


def started(words: WordCounts) -> None:
    eventually(lambda: READ[1] in words.cluster.admin.partition_counts(), "its topics are there")
    words.write(200)
    words.done()


def test_a_process_that_was_frozen_goes_on_when_others_have_its_tasks(words: WordCounts):
    frozen = words.start("one")
    started(words)
    words.start("two")
    eventually(lambda: words.members() == 2, "two members")
    words.write_for(0.5)
    frozen.send_signal(signal.SIGSTOP)
    eventually(lambda: words.members() == 1, "the frozen one is removed")
    words.write_for(2)
    frozen.send_signal(signal.SIGCONT)
    eventually(lambda: words.members() == 2, "it has joined again")
    words.done()
    assert frozen.poll() is None, words.printed()
    words.stop_all()
    words.check()


def client_ids(words: WordCounts) -> set[str]:
    """Those of the group's members: the transactional ids of stream threads."""
    groups = words.cluster.broker._client.describe_consumer_groups([APPLICATION])
    return {member.client_id for member in groups[APPLICATION].result().members}


def test_a_thread_whose_transactional_id_another_producer_took_goes_on(words: WordCounts):
    process = words.start("one")
    started(words)
    (transactional_id,) = eventually(lambda: client_ids(words), "the group has members")
    for _ in range(2):
        words.write_for(0.3)
        thief = Producer(
            {"bootstrap.servers": words.cluster.bootstrap_servers, "transactional.id": transactional_id}
        )
        thief.init_transactions(30)
        words.write_for(0.3)
    words.done()
    assert process.poll() is None, words.printed()
    words.stop_all()
    words.check()
    assert "Others have ended the transaction" in words.printed()


@pytest.fixture
def hasty(cluster: Cluster) -> Cluster:
    """A cluster whose transactions must be short."""
    cluster.create("in", "out")
    settings = {"transaction.timeout.ms": str(TRANSACTION_MS)}
    cluster.broker = cluster.broker_with(exactly_once=True, client_settings=settings)
    return cluster


def aborted(cluster: Cluster) -> set[tuple[str, int]]:
    """The transactional ids, with their producer ids, whose last transaction was aborted."""
    listed = cluster.broker._transactions().transactions(re.compile(".*"))
    return {(one.transactional_id, one.producer_id) for one in listed if one.state == "CompleteAbort"}


def counting(cluster: Cluster, function: Callable[[int], int], **settings: Any) -> App:
    app = cluster.app("counting", statestore_cache_max_bytes=0, commit_interval_ms=500, **settings)
    app.stream("in", key=str, value=int).map_values(function).group_by_key().count(
        name="counts"
    ).to_stream().to("out")
    return app


def test_a_function_that_takes_longer_than_a_transaction_may_is_reported_and_done_again(
    hasty: Cluster, caplog: pytest.LogCaptureFixture
):
    slow = [True]
    before = aborted(hasty)

    def hang(value: int) -> int:
        if value == 50 and slow:
            slow.pop()
            eventually(lambda: aborted(hasty) - before, "the broker has ended the transaction")
        return value

    streams = hasty.start(counting(hasty, hang))
    running(streams)
    hasty.write("in", [("k", i, i + 1) for i in range(100)])
    caught_up(streams)
    assert not slow
    assert "raise transaction_timeout_ms" in caplog.text
    assert [record.value for record in hasty.read("out")] == list(range(1, 101))
    assert streams.failure is None


def test_a_function_that_always_takes_longer_ends_the_application_after_its_task_timeout(hasty: Cluster):
    calls: list[int] = []

    def hang(value: int) -> int:
        if value == 50:
            calls.append(value)
            time.sleep(HANG_S)
        return value

    streams = hasty.start(counting(hasty, hang, task_timeout_ms=4_000))
    running(streams)
    hasty.write("in", [("k", i, i + 1) for i in range(100)])
    eventually(lambda: streams.finished, "it gives up")
    assert isinstance(streams.failure, TransactionEndedError)
    assert "raise transaction_timeout_ms" in str(streams.failure)
    assert 2 <= len(calls) <= 4
    assert [record.value for record in hasty.read("out")] == list(range(1, len(hasty.read("out")) + 1))


def test_commits_that_no_broker_answers_for_its_task_timeout_end_it_and_the_next_start_writes_each_count_once(
    cluster: Cluster,
):
    cluster.create("in", "out")
    cluster.broker = cluster.broker_with(exactly_once=True)
    away = BrokerUnavailableError("the broker is away")
    # Some commits succeed before. What a transaction holds has come to Kafka when its commit fails.
    faulty = FaultyBroker(cluster.broker, Faults("commit", away, at=3, times=10**9))
    streams = Streams(counting(cluster, lambda value: value, task_timeout_ms=300), broker=faulty)
    streams.start()
    written = 0

    def finished_while_input_comes() -> bool:
        nonlocal written
        cluster.write("in", [("k", i, i + 1) for i in range(written, written + 10)])
        written += 10
        return streams.finished

    with closing(streams):
        running(streams)
        eventually(finished_while_input_comes, "it gives up")
    assert streams.failure is away
    assert "s, and task_timeout_ms is 0.3 s" in str(away)
    committed = len(cluster.read("out"))
    assert 0 < committed < written
    run_to_the_end(cluster, counting(cluster, lambda value: value))
    assert [record.value for record in cluster.read("out")] == list(range(1, written + 1))
