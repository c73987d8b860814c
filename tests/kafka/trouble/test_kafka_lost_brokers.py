"""A client of librdkafka that has dropped all brokers, because one answered a metadata request with none, is
replaced."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing, suppress
from math import inf
from pathlib import Path

import pytest

from pystreams.broker.kafka import admin_client, consumer
from pystreams.errors import BrokerUnavailableError
from tests.kafka.exactly_once.proxy import Fault, Proxy
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.live.support import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def proxy(server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A broker that clients reach only through this. (``server`` is asked for because it knows whether Kafka can be
    had.)"""
    with closing(Proxy()) as proxy:
        listeners = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}"}
        broker = KafkaServer(tmp_path_factory.mktemp("proxied"), properties=listeners)
        proxy.target_port = broker.port
        broker.start()
        yield proxy
        broker.stop()


@pytest.fixture
def cluster(proxy: Proxy, tmp_path: Path) -> Iterator[Cluster]:
    with closing(Cluster(f"127.0.0.1:{proxy.port}", tmp_path)) as cluster:
        yield cluster


def without_brokers(frame: bytes) -> bytes:
    """A metadata response (version 9 to 13) whose list of brokers is empty. Every length in it is below 127."""
    start = 4 + 1 + 4  # correlation id, no tags, throttle time
    at, brokers = start + 1, frame[start] - 1
    for _ in range(brokers):
        at += 4  # node id
        at += frame[at]  # host: its length and one, which counts the length's own byte
        at += 4  # port
        at += max(1, frame[at])  # rack
        assert frame[at] == 0, "no tags"
        at += 1
    assert struct.unpack_from(">i", frame)[0] >= 0
    return frame[:start] + b"\x01" + frame[at:]


def read(reader) -> list[bytes | None]:
    return [value for batch in reader.poll(100) for value in batch.values]


def lose_brokers(proxy: Proxy, client: str) -> Fault:
    """The broker is away until clients have noticed, and then answers to this client name no broker."""
    fault = proxy.add(Fault("Metadata", "changed", client, count=8, change=without_brokers))
    broker, proxy.target_port = proxy.target_port, 1
    before = proxy.turned_away
    connections = proxy.cut()
    eventually(lambda: proxy.turned_away >= before + connections, "clients have tried to connect again")
    proxy.target_port = broker
    return fault


@pytest.mark.parametrize("noticed", ["by the stall watch", "by the client"])
def test_a_consumer_reads_on(cluster: Cluster, proxy: Proxy, noticed: str, monkeypatch: pytest.MonkeyPatch):
    by_the_client = noticed == "by the client"
    monkeypatch.setattr(consumer, "RENEW_AFTER_MS", 500.0 if by_the_client else inf)
    cluster.create("t")
    cluster.write("t", [("k", b"1", 1)], value=bytes)
    (partition,) = cluster.partitions("t")
    broker = cluster.broker_with(client_settings={"metadata.max.age.ms": "300"})
    name = f"reader-{noticed}"
    with closing(broker.consumer(name)) as reader:
        reader.assign({partition: 0})
        assert eventually(lambda: read(reader)) == [b"1"]
        fault = lose_brokers(proxy, name)
        eventually(lambda: reader.poll(50) or fault.hits >= 1)
        cluster.write("t", [("k", b"2", 2)], value=bytes)
        if not by_the_client:
            # The client would perhaps find the broker again by itself, but not for certain.
            proxy.remove(fault)
            reader.read_anew({partition: reader.position(partition)})
        assert eventually(lambda: read(reader)) == [b"2"]


def test_an_admin_lists_topics_again(cluster: Cluster, proxy: Proxy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(admin_client, "_INTERVAL_MS", 0.0)
    cluster.create("t")
    broker = cluster.broker_with(client_id="lost")
    with closing(broker.admin()) as admin:
        assert admin._partition_counts().keys() >= {"t"}
        fault = lose_brokers(proxy, "lost")

        def listed() -> bool:
            with suppress(BrokerUnavailableError):
                return admin._partition_counts(timeout_s=2.0).keys() >= {"t"}
            return False

        eventually(listed, "the topics are listed")
        assert fault.hits >= 1
