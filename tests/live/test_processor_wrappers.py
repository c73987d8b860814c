"""Processors around every step work on a log as in the test driver: caches, commits, restarts, several partitions."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import App, Processor, Record
from pystreams.processor import ProcessorContext
from pystreams.topology.wrapping import AnySupplier, ProcessorSupplier
from tests.live.support import Log, caught_up

RECORDS = [(f"k{i % 7}", i, i * 3) for i in range(200)]


class Around(Processor[Any, Any, Any, Any]):
    """Hands everything on and notes what its life was."""

    def __init__(self, name: str, inner: Processor[Any, Any, Any, Any], lives: list[tuple[str, str]]) -> None:
        self.name = name
        self.inner = inner
        self.lives = lives

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        self.lives.append(("init", self.name))
        self.inner.init(context)

    def process(self, record: Record[Any, Any]) -> None:
        self.inner.process(record)

    def close(self) -> None:
        self.inner.close()
        self.lives.append(("close", self.name))


def program(log: Log, name: str, **settings: Any) -> App:
    app = log.app(name, commit_interval_ms=50, **settings)
    values = app.stream("in", key=str, value=int)
    sums = values.group_by_key().aggregate(int, lambda total, value: total + value, name="sums")
    sums.filter(lambda total: total % 2 == 0, name="even").to_stream(step="changes").to(f"{name}-out")
    halves = values.map(lambda key, value: (key[:1], value), key=str, value=int).group_by_key(
        repartition="all"
    )
    halves.count(name="counts").to_stream().to(f"{name}-counts")
    return app


@pytest.mark.parametrize("cache_bytes", [0, 10 << 20])
def test_state_and_results_are_those_without_a_wrapper(log: Log, cache_bytes: int) -> None:
    log.create("in", partitions=3)
    log.create("plain-out", "wrapped-out", "plain-counts", "wrapped-counts")
    lives: list[tuple[str, str]] = []

    def wrap(name: str, supplier: ProcessorSupplier) -> AnySupplier:
        return lambda: Around(name, supplier(), lives)

    for part in (RECORDS[:120], RECORDS[120:]):
        log.write("in", part)
        for name, settings in (("plain", {}), ("wrapped", {"processor_wrapper": wrap})):
            streams = log.start(program(log, name, statestore_cache_max_bytes=cache_bytes, **settings))
            caught_up(streams)
            streams.close()
    assert log.table("wrapped-sums-changelog") == log.table("plain-sums-changelog")
    # When caches are flushed decides whether a row that is not there was ever told of.
    rows = [
        {k: v for k, v in log.table(f"{name}-out").items() if v is not None} for name in ("wrapped", "plain")
    ]
    assert rows[0] == rows[1] != {}
    assert log.table("wrapped-counts") == log.table("plain-counts") == {"k": 200}
    opened = [name for what, name in lives if what == "init"]
    assert sorted(name for what, name in lives if what == "close") == sorted(opened)
    assert opened.count("changes") == 2 * 3
