"""T2: a full cache flushes its store when it evicts a dirty entry, before any commit."""

from __future__ import annotations

import pytest

from tests.live.support import Log, Read, eventually, processed

INPUT = [("A", 1, 1001), ("D", 5, 1002), ("A", 20, 1003), ("A", 300, 1004)]


@pytest.mark.parametrize(("cache_bytes", "before_commit"), [(64, ["A", "D"]), (128, []), (10 << 20, [])])
def test_putting_a_second_key_evicts_the_first_if_only_one_fits(
    log: Log, cache_bytes: int, before_commit: list[str]
) -> None:
    log.create("in", "out")
    log.write("in", INPUT)
    app = log.app("sums", statestore_cache_max_bytes=cache_bytes, commit_interval_ms=600_000)
    table = (
        app.stream("in", key=str, value=int)
        .group_by_key()
        .aggregate(lambda: 0, lambda total, value: total + value, name="sum", value=int)
    )
    table.to_stream().to("out")
    streams = log.start(app)
    processed(streams, 4)
    flushed = streams.store("sum").query(lambda store: [key for key, _ in store.all()])
    assert sorted(flushed[0]) == ["A", "D"]
    assert log.read("out") == []
    streams.close()
    after = [Read("A", 1, 1001), Read("D", 5, 1002)] if before_commit else [Read("D", 5, 1002)]
    assert log.read("out") == [*after, Read("A", 321, 1004)]
    eventually(lambda: streams.finished)
