"""What is done again after an abort counts once in a store of versions, too, and its history shows nothing of it."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from typing import Any

import pytest

from pystreams.app import App
from pystreams.broker.port import TopicSpec
from pystreams.runtime.streams import Streams
from tests.kafka.support import Cluster
from tests.kafka.trouble.test_kafka_trouble_records import Ahead, in_the_future
from tests.live.support import KEPT, TIMEOUT_S, caught_up

KEYS = [f"k{number}" for number in range(7)]
Version = tuple[int, int, int | None]


def counting(cluster: Cluster, *, persistent: bool) -> App:
    """Counts in a store of versions. What the broker refuses is found by doing once more what was not committed."""
    app = cluster.app("counting", production_exception_handler="continue", statestore_cache_max_bytes=0)
    source = app.stream("in", key=str, value=int)
    future = in_the_future()
    source.process(lambda: Ahead(future), key=str, value=int).to("timed")
    counts = source.group_by_key().count(name="counts", history=1_000_000, persistent=persistent)
    counts.to_stream().to("out")
    return app


def found(streams: Streams) -> dict[str, list[Version]]:
    """All versions of each key: value, from when, until when."""
    store = streams.store("counts")
    return {key: [tuple(one) for one in store.query(lambda s, key=key: s.versions(key))[0]] for key in KEYS}


def expected(records: list[tuple[str, int, int]]) -> dict[str, list[Version]]:
    times: dict[str, list[int]] = defaultdict(list)
    for key, _, time in records:
        times[key].append(time)
    return {
        key: [
            (n + 1, since, until)
            for n, (since, until) in enumerate(zip(of_key, [*of_key[1:], None], strict=True))
        ]
        for key, of_key in times.items()
    }


@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_counts_that_are_done_again_count_once_now_and_in_history(cluster: Cluster, persistent: bool) -> None:
    cluster.create("in", "out")
    cluster.admin.create_topics([TopicSpec("timed", 1, {**KEPT, "message.timestamp.after.max.ms": "1000"})])
    streams = cluster.start(counting(cluster, persistent=persistent))
    records: list[tuple[str, int, int]] = []
    for start in (0, 120, 240):
        more = [(KEYS[i % 7], i, i + 1) for i in range(start, start + 120)]
        records += more
        cluster.write("in", more)
        caught_up(streams)
        assert found(streams) == expected(records)
    assert cluster.table("out") == Counter(key for key, _, _ in records)
    assert streams.close(1000 * TIMEOUT_S)
    shutil.rmtree(cluster.path / "state")
    again: Any = cluster.start(counting(cluster, persistent=persistent))
    caught_up(again)
    assert found(again) == expected(records), "restored from the changelog"
