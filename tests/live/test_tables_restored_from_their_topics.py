"""With ``reuse.ktable.source.topics`` a table needs no changelog: what it has read is in its topic."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from pystreams.app import App
from pystreams.ids import TopicPartition
from pystreams.runtime.streams import Streams
from pystreams.timestamps import ConsumedRecord
from tests.live.support import Log, caught_up, eventually

PARTITIONS = 2
COMPACTED = {"cleanup.policy": "compact"}


class Restored:
    """Counts the records that are restored by store; implements ``RestoreListener``."""

    def __init__(self) -> None:
        self.records: dict[str, int] = {}
        self.topics: set[str] = set()

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        self.topics.add(partition.topic)

    def on_batch_restored(
        self, partition: TopicPartition, store: str, next_offset: int, records: int
    ) -> None:
        self.records[store] = self.records.get(store, 0) + records

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None:
        pass


def pricing(log: Log) -> App:
    """Orders joined with the prices of their articles."""
    app = log.app("pricing", topology_optimization="reuse.ktable.source.topics", commit_interval_ms=20)
    prices = app.table("prices", key=str, value=int, name="price-list")
    app.stream("orders", key=str, value=int).join(prices, lambda count, price: count * price, value=int).to(
        "totals"
    )
    return app


def rows(streams: Streams) -> dict[str, int]:
    return {key: item.value for key, item in streams.store("price-list").all()}


@pytest.mark.parametrize("wiped", [False, True], ids=["state kept", "state wiped"])
def test_a_table_is_restored_from_its_topic_as_far_as_it_was_committed(log: Log, wiped: bool) -> None:
    log.create("prices", partitions=PARTITIONS, config=COMPACTED)
    log.create("orders", "totals", partitions=PARTITIONS)
    log.write("prices", [(f"a{n}", n, 10 + n) for n in range(100)] + [("a7", None, 200)])
    streams = log.start(pricing(log))
    caught_up(streams)
    expected = {f"a{n}": n for n in range(100) if n != 7}
    eventually(lambda: rows(streams) == expected, "all prices are in")
    streams.close()
    assert "pricing-price-list-changelog" not in log.admin.describe_topics()

    if wiped:
        shutil.rmtree(log.path / "state")
    # In the topic, but not committed: the orders are older and must not see them.
    log.write("orders", [("a3", 2, 300), ("a7", 1, 301)])
    log.write("prices", [("a3", 1_000, 400), ("a7", 70, 401)])
    restored = Restored()
    streams = log.start(pricing(log), prepare=lambda streams: streams.set_restore_listener(restored))
    caught_up(streams)
    assert restored.topics == {"prices"}
    assert restored.records.get("price-list", 0) == (101 if wiped else 0)
    assert log.table("totals") == {"a3": 6}
    expected |= {"a3": 1_000, "a7": 70}
    eventually(lambda: rows(streams) == expected, "the new prices are in, too")


def value_as_time(record: ConsumedRecord) -> int:
    return -1 if record.value == 13 else 1_000 + record.value


@pytest.mark.parametrize("optimization", ["none", "reuse.ktable.source.topics"])
def test_a_restored_table_has_the_rows_that_were_processed_with_their_times(
    log: Log, optimization: str
) -> None:
    """Not those that could not be read, which would stand in the way of later ones, or whose time was refused."""
    log.create("prices")
    log.write("prices", [("a", 1, 10), ("b", 2, 11), ("c", 13, 12), ("d", 4, 13)])
    log.write("prices", [("a", "bad", 14)], value=str)

    def start() -> Streams:
        app = log.app(
            "pricing", topology_optimization=optimization, deserialization_exception_handler="continue"
        )
        app.table("prices", key=str, value=int, name="price-list", timestamp_extractor=value_as_time)
        streams = log.start(app)
        caught_up(streams)
        return streams

    def timed_rows(streams: Streams) -> dict[str, tuple[int, int]]:
        return {key: (item.value, item.timestamp) for key, item in streams.store("price-list").all()}

    good = {"a": (1, 1_001), "b": (2, 1_002), "d": (4, 1_004)}
    streams = start()
    assert timed_rows(streams) == good
    streams.close()
    shutil.rmtree(log.path / "state")
    streams = start()
    assert timed_rows(streams) == good
    log.write("prices", [("a", 3, 20)])
    eventually(lambda: timed_rows(streams) == {**good, "a": (3, 1_003)}, "a row that had a bad record")


@pytest.mark.parametrize("wiped", [False, True], ids=["state kept", "state wiped"])
def test_what_was_committed_and_is_not_in_the_topic_any_more_is_an_error(log: Log, wiped: bool) -> None:
    log.create("prices", "orders", "totals")
    log.write("prices", [("a", 1, 10), ("b", 2, 11)])
    streams = log.start(pricing(log))
    caught_up(streams)
    streams.close()
    if wiped:
        shutil.rmtree(log.path / "state")
    offsets = {partition: replace(at, offset=500) for partition, at in log.committed("pricing").items()}
    log.admin.set_group_offsets("pricing", offsets)
    streams = log.start(pricing(log))
    eventually(lambda: streams.finished, "the application has stopped")
    assert "the committed offset 500 of prices-0 is not in the log any more" in str(streams.failure)
