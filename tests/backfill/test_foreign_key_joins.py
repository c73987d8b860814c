"""A backfilled foreign-key join ends as the last values of both tables say; live goes on from there."""

from __future__ import annotations

from pathlib import Path

from pystreams.app import App
from pystreams.partitioning import partition_for_key
from tests.backfill.kit import Backfill, everything, memory
from tests.live.support import Line
from tests.live.test_foreign_key_joins import Change, changes, customer_of, expected, named

PARTITIONS = {"orders": 3, "customers": 2}


def program() -> App:
    app = App("fk")
    orders, customers = (app.table(name, key=str, value=str) for name in PARTITIONS)
    inner = orders.join(customers, named, foreign_key=customer_of, name="inner-rows", value=str)
    inner.to_stream().to("inner")
    outer = orders.left_join(
        customers, named, foreign_key=customer_of, step="outer", name="outer-rows", value=str
    )
    outer.to_stream().to("left_outer")
    return app


def spread(done: list[Change]) -> dict[str, list[list[Line]]]:
    found: dict[str, list[list[Line]]] = {topic: [[] for _ in range(n)] for topic, n in PARTITIONS.items()}
    for topic, key, value, timestamp in done:
        line = Line(key.encode(), None if value is None else value.encode(), timestamp)
        found[topic][partition_for_key(line.key or b"", PARTITIONS[topic])].append(line)
    return found


def test_rows_end_as_both_tables_say(tmp_path: Path) -> None:
    done = changes(seed=23)
    found = everything(Backfill(program(), memory(spread(done)), tmp_path, commit_records=100).run())
    rows = expected(done)
    for store, topic in (("inner-rows", "inner"), ("outer-rows", "left_outer")):
        held = {e.key.decode(): e.value.decode() for of in found["changelogs"][store].values() for e in of}
        assert held == rows[topic], store
        last = {record.key: record.value for of in found["sinks"][topic].values() for record in of}
        assert {k.decode(): v.decode() for k, v in last.items() if v is not None} == rows[topic], topic


def test_subscriptions_lie_with_the_rows_that_they_are_for(tmp_path: Path) -> None:
    done = changes(seed=24)
    found = everything(Backfill(program(), memory(spread(done)), tmp_path).run())
    placed = found["changelogs"]["outer-subscription-store"]
    assert set(placed) == {0, 1}
    for partition, entries in placed.items():
        for entry in entries:
            foreign_key = entry.key[4 : 4 + int.from_bytes(entry.key[:4], "big")]
            assert partition_for_key(foreign_key, 2) == partition
