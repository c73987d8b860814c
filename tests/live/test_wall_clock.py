"""Punctuators of the wall clock go on while nothing comes in: their results are committed, and they hold nobody up."""

from __future__ import annotations

import pytest

from pystreams.app import App
from pystreams.processor import Processor, ProcessorContext, PunctuationType
from pystreams.record import Record
from pystreams.runtime.streams import Streams
from tests.live.support import Log, eventually, running

pytestmark = pytest.mark.both_logs


def ticking(log: Log, **settings: object) -> App:
    """Forwards records, and a tick every millisecond."""

    class Tick(Processor[str, int, str, int]):
        def init(self, context: ProcessorContext[str, int]) -> None:
            super().init(context)
            context.schedule(1, PunctuationType.WALL_CLOCK_TIME, self.tick)

        def process(self, record: Record[str, int]) -> None:
            self.context.forward(record)

        def tick(self, now_ms: int) -> None:
            self.context.forward(Record("tick", 0, now_ms))

    log.create("in", "out")
    app = log.app("ticking", **settings)
    app.stream("in", key=str, value=int).process(Tick).to("out", key=str, value=int)
    return app


def test_ticks_are_committed_though_nothing_comes_in(log: Log) -> None:
    running(log.start(ticking(log, commit_interval_ms=10)))
    eventually(lambda: len(log.read("out")) > 2, "ticks arrive")
    # With the offset at which the task began, by which the group checks that the task is still this member's.
    (partition,) = log.partitions("in")
    assert {p: committed.offset for p, committed in log.committed("ticking").items()} == {partition: 0}


def test_catching_up_does_not_wait_for_the_last_tick(log: Log) -> None:
    app = ticking(log, commit_interval_ms=600_000)
    log.write("in", [("k", 1, 1)])
    Streams(app, broker=log.broker).run(until_caught_up=True)
    assert log.table("out")["k"] == 1
