"""Joins of tables end as the last values of both sides say, over partitions, caches and a restart in the middle."""

from __future__ import annotations

import random
from functools import partial

import pytest

from pystreams.app import App
from pystreams.runtime.streams import Streams
from tests.live.support import Log, caught_up, eventually

PARTITIONS = 3
KEYS = [f"k{number}" for number in range(40)]

Change = tuple[str, str, int | None, int]


def changes(seed: int) -> list[Change]:
    """(table, key, value, timestamp), some of them deletions."""
    chance = random.Random(seed)
    return [
        (
            chance.choice(("left", "right")),
            chance.choice(KEYS),
            chance.choice((None, number, number)),
            1_000 + number,
        )
        for number in range(1_500)
    ]


def expected(done: list[Change]) -> dict[str, dict[str, int]]:
    """By topic, the rows that there are in the end."""
    left, right = ({k: v for topic, k, v, _ in done if topic == side} for side in ("left", "right"))
    pairs = {key: (left.get(key), right.get(key)) for key in KEYS}
    needs = {"inner": (True, True), "left_outer": (True, False), "outer": (False, False)}
    return {
        topic: {
            key: combine(one, two)
            for key, (one, two) in pairs.items()
            if (one is not None or two is not None)
            and (one is not None or not needs_one)
            and (two is not None or not needs_two)
        }
        for topic, (needs_one, needs_two) in needs.items()
    }


def combine(one: int | None, two: int | None) -> int:
    return 10_000 * (one or 0) + (two or 0)


def holds(streams: Streams, store: str, rows: dict[str, int]) -> bool:
    return {key: item.value for key, item in streams.store(store).all()} == rows


def joining(log: Log, cache_bytes: int) -> App:
    app = log.app("joining", statestore_cache_max_bytes=cache_bytes, num_stream_threads=2)
    left, right = (app.table(name, key=str, value=int) for name in ("left", "right"))
    left.join(right, combine, name="inner-rows", value=int).to_stream().to("inner")
    left.left_join(right, combine, value=int).to_stream().to("left_outer")
    left.outer_join(right, combine, name="outer-rows", value=int, persistent=False).to_stream().to("outer")
    return app


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20], ids=["without a cache", "with a cache"])
def test_joined_tables_end_as_both_sides_say(log: Log, cache_bytes: int) -> None:
    log.create("left", "right", "inner", "left_outer", "outer", partitions=PARTITIONS)
    history = changes(seed=7)
    for start, end in ((0, 700), (700, len(history))):
        for topic, key, value, timestamp in history[start:end]:
            log.write(topic, [(key, value, timestamp)])
        streams = log.start(joining(log, cache_bytes))
        caught_up(streams)
        rows = expected(history[:end])
        for topic in rows:
            found = {key: value for key, value in log.table(topic).items() if value is not None}
            assert found == rows[topic], topic
        for store, topic in (("inner-rows", "inner"), ("outer-rows", "outer")):
            # A task that just goes to the other thread is not seen.
            eventually(partial(holds, streams, store, rows[topic]), f"{store} holds its rows")
        streams.close()
