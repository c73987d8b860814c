"""Aggregates whose store has a cache: the same keys again and again, and more keys than fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from pystreams import JsonSerde, StreamsBuilder, TimeWindows
from pystreams.serde import INT, STR
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores
from tests.benchmarks.micro.measure import Case
from tests.benchmarks.micro.rig import NOON_MS, opened, rig

N = 20_000
KEYS = 1_000


def count(builder: StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).group_by_key().count(name="counts").to_stream().to("out")


def windowed_count(builder: StreamsBuilder) -> None:
    windows = TimeWindows.tumbling(86_400_000)
    counts = builder.stream("in", key=str, value=str).group_by_key().windowed_by(windows).count(name="counts")
    counts.to_stream().to("out")


def nothing(builder: StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).foreach(id)


def increments(state: TaskStores, keys: list[bytes], one_more: Callable[[Any], Any]) -> Callable[[], None]:
    store: Any = state.stores["counts"]
    read, write = store.read, store.write

    def run() -> None:
        for key in keys:
            found = read(key)
            write(key, one_more(None if found is None else found[0]), NOON_MS)

    return run


def next_int(value: int | None) -> int:
    return 1 if value is None else value + 1


def next_dict(value: dict[str, int] | None) -> dict[str, int]:
    return {"n": 1 if value is None else value["n"] + 1}


@contextmanager
def cases() -> Iterator[list[Case]]:
    """The budget of an aggregate of an immutable value that is cached is 0.6 µs, operator and all."""
    keys = [f"key-{i * i % KEYS}".encode() for i in range(N)]
    many = [f"key-{i}".encode() for i in range(N)]
    ints = StoreSpec("counts", "timestamped_key_value", STR, INT, cached=True)
    dicts = StoreSpec("counts", "timestamped_key_value", STR, JsonSerde(dict), cached=True)
    with ExitStack() as stack:
        of_ints = stack.enter_context(opened(ints))
        of_dicts = stack.enter_context(opened(dicts))
        small = stack.enter_context(opened(ints, cache_bytes=100_000))
        small.stores["counts"].on_flush(lambda *entry: None, False)
        bare = stack.enter_context(rig(nothing, keys, keys))
        counting = stack.enter_context(rig(count, keys, keys))
        windowed = stack.enter_context(rig(windowed_count, keys, keys))

        def feed() -> None:
            for each in (bare, counting, windowed):
                each.feed()
                each.state.abort()

        yield [
            Case("read and write, int, cached", increments(of_ints, keys, next_int), N),
            Case("read and write, JSON dict, cached as bytes", increments(of_dicts, keys, next_dict), N),
            Case(
                "read and write, int, every one evicts",
                increments(small, many, next_int),
                N,
                before=small.abort,
            ),
            Case("count(), cached", counting.run, N, 600, baseline=bare.run, before=feed),
            Case("count() by window, cached", windowed.run, N, baseline=bare.run, before=feed),
        ]
