"""A broker that is killed while a transaction is under way comes back, and every count is written once: ``make
trouble``. It is not part of the suite, because about once in ten times Kafka leaves the group's offsets pending for
longer than this test waits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kafka.exactly_once.word_counts import READ, WordCounts
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mortal(server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker that may be killed. (``server`` is asked for because it knows whether Kafka can be had.)"""
    mortal = KafkaServer(tmp_path_factory.mktemp("mortal"))
    mortal.start()
    yield mortal
    mortal.stop()


@pytest.fixture
def cluster(mortal: KafkaServer, tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(mortal.bootstrap_servers, tmp_path)) as cluster:
        yield cluster


def test_a_broker_is_killed_and_comes_back(words: WordCounts, mortal: KafkaServer):
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
    assert process.poll() is None, words.printed()
    words.stop_all()
    words.check()
