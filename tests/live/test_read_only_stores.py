"""A read-only store is restored from the topic that fills it, with the state directory and without."""

from __future__ import annotations

import shutil

import pytest

from pystreams import Processor, Record, Topology
from pystreams.processor import ProcessorContext
from pystreams.runtime.streams import Streams
from pystreams.state.stores.factory import Stores
from tests.live.support import Log, caught_up

PARTITIONS = 2


class Fill(Processor[str, str, str, str]):
    """Keeps the rows."""

    def init(self, context: ProcessorContext[str, str]) -> None:
        self.rows = context.store("rows")

    def process(self, record: Record[str, str]) -> None:
        self.rows.put(record.key, record.value)


class Look(Processor[str, str, str, str]):
    """Forwards the row of the key."""

    def init(self, context: ProcessorContext[str, str]) -> None:
        super().init(context)
        self.rows = context.store("rows")

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(str(self.rows.get(record.key))))


def topology() -> Topology:
    made = Topology()
    made.add_read_only_state_store(
        Stores.key_value_store("rows", str, str), "rows-in", "rows", "fill", Fill, key=str, value=str
    )
    made.add_source("in", "in", key=str, value=str).add_processor("look", Look, "in", stores=["rows"])
    made.copartition(["rows-in", "in"])
    return made.add_sink("out", "out", "look", key=str, value=str)


def run(log: Log) -> None:
    """Run until everything is processed."""
    streams = Streams(topology(), log.app("looking", commit_interval_ms=20).config, broker=log.broker)
    try:
        streams.start()
        caught_up(streams)
    finally:
        streams.close()


@pytest.mark.parametrize("wiped", [False, True], ids=["state kept", "state wiped"])
def test_rows_are_there_after_a_restart(log: Log, wiped: bool) -> None:
    log.create("rows", partitions=PARTITIONS, config={"cleanup.policy": "compact"})
    log.create("in", "out", partitions=PARTITIONS)
    log.write("rows", [(f"k{n}", f"row {n}", 10 + n) for n in range(50)] + [("k7", None, 100)], value=str)
    run(log)
    if wiped:
        shutil.rmtree(log.path / "state")
    # Newer than what asks for it: it must not be seen.
    log.write("rows", [("k3", "new", 900)], value=str)
    log.write("in", [("k3", "?", 300), ("k7", "?", 301), ("k9", "?", 302)], value=str)
    run(log)
    assert log.table("out", value=str) == {"k3": "row 3", "k7": "None", "k9": "row 9"}
    assert "looking-rows-changelog" not in log.admin.describe_topics()
