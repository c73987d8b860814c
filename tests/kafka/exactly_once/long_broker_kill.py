"""The only broker is killed while transactions are under way, and comes back; every count is written once: ``make
trouble``.

The application reaches the broker through a proxy, and so does the broker itself when it writes markers. A commit whose
markers do not arrive before the broker is killed is what makes Kafka forget some of them, about every second time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kafka.exactly_once.proxy import Fault, Proxy
from tests.kafka.exactly_once.word_counts import READ, WordCounts
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    with closing(Proxy()) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def mortal(
    server: KafkaServer, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaServer]:
    """A broker that may be killed. (``server`` is asked for because it knows whether Kafka can be had.)"""
    listeners = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
    mortal = KafkaServer(tmp_path_factory.mktemp("mortal"), properties=listeners)
    proxy.target_port = mortal.port
    mortal.start()
    yield mortal
    mortal.stop()


@pytest.fixture
def cluster(mortal: KafkaServer, proxy: Proxy, tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(f"127.0.0.1:{proxy.port}", tmp_path)) as cluster:
        yield cluster


def test_a_broker_is_killed_and_comes_back(words: WordCounts, mortal: KafkaServer, proxy: Proxy):
    process = words.start("one")
    eventually(lambda: READ[1] in words.cluster.admin.partition_counts(), "its topics are there")
    words.write(200)
    words.done()
    for _ in range(2):
        words.write(2_000)
        time.sleep(words.choose.uniform(0, 0.5))  # what is under way then is a matter of chance
        mortal.kill()
        mortal.start()
        words.write(100)
    words.done()
    for _ in range(4):
        unmarked = proxy.add(Fault("WriteTxnMarkers", "lost", count=1_000_000))
        words.write(1_000)
        eventually(lambda fault=unmarked: fault.hits, "a transaction is committed, but not marked")
        mortal.kill()
        proxy.remove(unmarked)
        mortal.start()
        words.write(100)
        words.done()
    assert process.poll() is None, words.printed()
    words.stop_all()
    words.check()
