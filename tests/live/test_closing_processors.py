"""What a processor writes while it is closed comes too late: neither its changelog nor its store ever holds it."""

from __future__ import annotations

from typing import Any

from pystreams.app import App
from pystreams.errors import BrokerUnavailableError
from pystreams.processor import Processor
from pystreams.record import Record
from pystreams.state.stores.factory import Stores
from tests.live.support import Log, caught_up, eventually, processed, running

RECORDS = [(f"k{i}", i, i) for i in range(30)]


def closing(log: Log, trouble: list[int], **settings: Any) -> App:
    """Keeps each record; the first value in ``trouble`` meets an absent broker, once."""

    class Keep(Processor[str, int, str, int]):
        def process(self, record: Record[str, int]) -> None:
            self.context.store("kept").put(record.key, record.value)
            if record.value in trouble:
                trouble.remove(record.value)
                raise BrokerUnavailableError("the broker is away")

        def close(self) -> None:
            self.context.store("kept").put("closed", 1)

    app = log.app("closing", **settings)
    app.stream("in", key=str, value=int).process(Keep, stores=[Stores.key_value_store("kept", str, int)])
    log.create("in", partitions=2)
    log.write("in", RECORDS)
    return app


def kept(log: Log) -> dict[Any, Any]:
    return log.table("closing-kept-changelog")


def test_after_trouble(log: Log) -> None:
    trouble = [20]
    streams = log.start(closing(log, trouble))
    eventually(lambda: not trouble and streams.caught_up(), "caught up in spite of it")
    log.write("in", [("more", 1, 1)])
    caught_up(streams)
    assert kept(log) == {key: value for key, value, _ in RECORDS} | {"more": 1}


def test_when_a_task_moves(log: Log) -> None:
    app = closing(log, [], commit_interval_ms=600_000)
    one = log.start(app)
    processed(one, len(RECORDS))
    two = log.start(app)
    eventually(lambda: [len(c.progress().threads[0].tasks) for c in (one, two)] == [1, 1], "a task has moved")
    running(one)
    running(two)
    one.close()
    two.close()
    assert kept(log) == {key: value for key, value, _ in RECORDS}
