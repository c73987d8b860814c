"""A backfill reads Kafka by position: holes, markers, aborted transactions and open ones neither end nor stop it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pystreams.backfill.archive.archive import archive
from pystreams.backfill.sources import KafkaSource, ParquetSource, Source, TopicSources
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.tables.options import table_of
from pystreams.errors import BrokerError, BrokerUnavailableError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.live import append, create
from tests.backfill.programs import history, windowed_sum
from tests.kafka.support import Cluster

ONE = TopicPartition("in", 0)


def transactional(cluster: Cluster) -> Producer:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "writer"})
    producer.init_transactions(30)
    return producer


def send(producer: Producer, values: Iterable[str]) -> None:
    for value in values:
        producer.produce("in", value, "k", 0, timestamp=1_700_000_000_000)
    producer.flush()


def values_of(source: Source, start: int, end: int) -> list[tuple[int, bytes]]:
    return [
        pair
        for rows in pickle.loads(pickle.dumps(source)).read(InputRange(ONE, start, end))
        for pair in zip(rows.column("offset").to_pylist(), rows.column("value").to_pylist(), strict=True)
    ]


def test_a_backfill_from_kafka_equals_one_from_memory(cluster: Cluster, tmp_path: Path) -> None:
    past = history("windowed sum", 2, 2)
    create(cluster, past, [])
    append(cluster, past)
    kafka = KafkaSource(cluster.bootstrap_servers)
    in_memory = memory(past)
    partition = TopicPartition("amounts", 0)
    for until in (None, 150, {partition: 17}):
        found = Backfill(windowed_sum(), kafka, tmp_path / f"k-{until}", until=until)
        expected = Backfill(windowed_sum(), in_memory, tmp_path / f"m-{until}", until=until)
        assert found.manifest.inputs == expected.manifest.inputs
        assert everything(found.run()) == everything(expected.run())


def test_transactions_leave_holes_that_end_nothing(cluster: Cluster) -> None:
    cluster.create("in")
    producer = transactional(cluster)
    producer.begin_transaction()
    send(producer, ["a", "b"])
    producer.commit_transaction()  # marker at 2
    producer.begin_transaction()
    send(producer, ["x", "y"])
    producer.abort_transaction()  # marker at 5
    producer.begin_transaction()
    send(producer, ["c"])
    producer.commit_transaction()  # 6, marker at 7
    committed = KafkaSource(cluster.bootstrap_servers, isolation_level="read_committed")
    assert committed.ends([ONE]) == {ONE: 8}
    assert values_of(committed, 0, 8) == [(0, b"a"), (1, b"b"), (6, b"c")]
    # Ranges that are nothing but holes, or end in one.
    assert values_of(committed, 2, 6) == []
    assert values_of(committed, 1, 3) == [(1, b"b")]
    assert values_of(committed, 7, 8) == []
    everything = KafkaSource(cluster.bootstrap_servers)
    assert [offset for offset, _ in values_of(everything, 0, 8)] == [0, 1, 3, 4, 6]


def test_an_open_transaction_ends_what_is_committed(cluster: Cluster) -> None:
    cluster.create("in")
    producer = transactional(cluster)
    producer.begin_transaction()
    send(producer, ["a"])
    producer.commit_transaction()
    producer.begin_transaction()
    send(producer, ["later"])
    committed = KafkaSource(cluster.bootstrap_servers, {"isolation.level": "read_committed"})
    assert committed.ends([ONE]) == {ONE: 2}
    assert committed.offsets_at([ONE], 4_000_000_000_000) == {ONE: 2}
    assert values_of(committed, 0, 2) == [(0, b"a")]
    assert KafkaSource(cluster.bootstrap_servers).ends([ONE]) == {ONE: 3}
    producer.abort_transaction()


def test_records_that_were_deleted_since_the_cut_are_reported(cluster: Cluster) -> None:
    cluster.create("in")
    cluster.write("in", [("k", n, n) for n in range(10)])
    source = KafkaSource(cluster.bootstrap_servers)
    cluster.admin.delete_records({ONE: 4}).wait()
    assert source.beginnings([ONE]) == {ONE: 4}
    with pytest.raises(OffsetOutOfRangeError, match="deleted before they could be read") as raised:
        values_of(source, 2, 10)
    assert "offsets 2 to 4" in raised.value.where
    with pytest.raises(OffsetOutOfRangeError, match="deleted before they could be read"):
        values_of(source, 0, 3)
    assert [offset for offset, _ in values_of(source, 4, 10)] == [4, 5, 6, 7, 8, 9]


def test_an_archive_of_kafka_gives_what_kafka_gives(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create("in", "empty", partitions=2)
    producer = transactional(cluster)
    source = KafkaSource(cluster.bootstrap_servers, isolation_level="read_committed")
    for some in (["a", "b", "c"], ["d"], []):
        producer.begin_transaction()
        send(producer, some)
        producer.commit_transaction()
        archive(source, ["in", "empty"], str(tmp_path / "archive"), file_offsets_max=2)
    archived = ParquetSource(str(tmp_path / "archive"))
    assert dict(archived.partitions()) == {"in": 2, "empty": 2}
    end = source.ends([ONE])[ONE]
    assert archived.ends([ONE]) == {ONE: end}
    assert values_of(archived, 0, end) == values_of(source, 0, end)
    assert values_of(TopicSources({"in": archived}, source), 0, end) == values_of(source, 0, end)


def test_a_store_as_a_table_is_what_was_committed(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create("app-totals-changelog", config={"cleanup.policy": "compact"})
    producer = transactional(cluster)
    for values, ends in (
        (("one", "two"), "commit"),
        (("three", "four"), "abort"),
        ((None, "five"), "commit"),
    ):
        producer.begin_transaction()
        for key, value in zip("ab", values, strict=True):
            producer.produce("app-totals-changelog", value, key, 0, timestamp=1_700_000_000_000)
        producer.flush()
        producer.commit_transaction() if ends == "commit" else producer.abort_transaction()
    options = {"store": "totals", "application_id": "app", "key_type": "str", "value_type": "str"}
    table = table_of({**options, "bootstrap_servers": cluster.bootstrap_servers})
    [part] = pickle.loads(pickle.dumps(table)).parts()
    [rows] = table.read(part, str(tmp_path))
    found = rows.select(["key", "value"]).to_pylist()
    assert found == [{"key": "b", "value": "five"}]


def test_nobody_there_is_reported_without_secrets() -> None:
    source = KafkaSource(
        "127.0.0.1:1",
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "u",
            "sasl.password": "hush-hush",
        },
    )
    assert "hush-hush" not in repr(source)
    assert "hush-hush" not in repr(TopicSources({"in": source}))
    assert "hush-hush" not in source.description
    with pytest.raises((BrokerUnavailableError, BrokerError)) as raised, closing(source.connect()):
        pass
    assert "hush-hush" not in str(raised.value)
