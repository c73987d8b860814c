"""What a read of windows leaves recently used in their cache, and in which order windows come, is what it is in Java.

``java/cached_window_reads.json`` has random reads and writes of window stores, ranges of keys first of all, with what
Kafka Streams 4.3.1 gave, what its cache then held, last used first (``+``: a place of the index), and what it logged.
Left out are ranges that are open at an end in stores without an order of time (docs/differences.md).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pystreams import Processor, Record, Stores, Topology, TopologyTestDriver
from pystreams.state.spec import StoreSpec
from tests.semantics.test_store_reads import done, play

Json = Any
CASES: list[Json] = json.loads(
    (Path(__file__).parent / "java" / "cached_window_reads.json").read_text(encoding="utf-8")
)
#: What the language makes of a windowed table that is emitted on close.
_ON_CLOSE: dict[str, Json] = {
    "tumbling on close": {"by_time": True, "no_key_index": True},
    "sliding on close": {"by_time": True},
    "on close with headers": {"by_time": True, "no_key_index": True, "headers": True},
}


def spec_of(case: Json) -> StoreSpec:
    make = Stores.window_store if case["kind"] == "window" else Stores.timestamped_window_store
    spec = make(
        "s",
        str,
        str,
        size=case["size"],
        retention=case["retention"],
        persistent=case["persistent"],
        cached=case["cached"],
    )
    return replace(spec, **_ON_CLOSE.get(case["kind"], {}))


def held(store: Any) -> str:
    """What its cache holds, last used first."""
    return " ".join(
        f"{key.decode()}@{start}{'+' * len(index)}" for key, start, *index in reversed(store.cache.entries)
    )


@pytest.mark.parametrize("case", CASES, ids=[f"{case['kind']} {n}" for n, case in enumerate(CASES)])
def test_reads_give_log_and_touch_what_javas_do(case: Json) -> None:
    def check(store: Any, op: Json) -> None:
        assert done(store, op) == op["gives"], op
        assert "holds" not in op or held(store) == op["holds"], op

    play(case, spec_of(case), check)


@pytest.mark.parametrize("reverse", [False, True])
def test_windows_of_an_open_range_are_found_once(reverse: bool) -> None:
    """Java looks through its cache once for each segment, and through all of it where an end is open."""
    starts = [0, 70_000, 140_000]
    topology = Topology().add_source("in", "in", key=str, value=str)
    found: list[list[int]] = []

    class Uses(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            store = self.context.store("s")
            for start in starts:
                store.put("k", "v", start)
            read = store.backward_fetch_range if reverse else store.fetch_range
            for bounds in ((None, None), (None, "z"), ("a", None)):
                with read(*bounds, 0, 200_000) as windows:
                    found.append([window.start for window, _ in windows])

    spec = Stores.window_store("s", str, str, size=10, retention=300_000, cached=True)
    topology.add_processor("uses", Uses, "in", stores=[spec])
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("r", "1", timestamp=1)
    assert found == [starts[::-1] if reverse else starts] * 3


@pytest.mark.parametrize("cache", [0, 200, 10_000])
@pytest.mark.parametrize("reverse", [False, True])
def test_windows_of_keys_that_begin_with_one_another_are_found_once(cache: int, reverse: bool) -> None:
    """Java's cache in memory has the longer key first where zero bytes follow, its store the shorter one."""
    keys = ["", "\x00", "\x00\x00", "a", "a\x00"]
    topology = Topology().add_source("in", "in", key=str, value=str)
    found: list[list[tuple[str, int]]] = []

    class Uses(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            store = self.context.store("s")
            for key in keys if record.value == "first" else keys[::2]:
                store.put(key, "v", 30_000)
            with store.backward_all() if reverse else store.all() as windows:
                found.append([(window.key, window.start) for window, _ in windows])

    spec = Stores.window_store("s", str, str, size=10, retention=300_000, persistent=False, cached=True)
    topology.add_processor("uses", Uses, "in", stores=[spec])
    with TopologyTestDriver(topology, {"statestore_cache_max_bytes": cache}) as driver:
        source = driver.create_input_topic("in", key=str, value=str)
        for value in ("first", "again"):
            source.pipe_input("r", value, timestamp=1)
    wanted = [(key, 30_000) for key in keys]
    assert found == [wanted[::-1] if reverse else wanted] * 2


@pytest.mark.parametrize("cache", [0, 10_000])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("first", ["", None])
def test_windows_of_a_range_whose_last_key_ends_with_zero_bytes_are_found(
    cache: int, persistent: bool, first: str | None
) -> None:
    """Java compares what follows the last key with what follows shorter ones, and takes those for later keys."""
    topology = Topology().add_source("in", "in", key=str, value=str)
    found: list[list[str]] = []

    class Uses(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            store = self.context.store("s")
            for key in ("a", "a\x00", "b"):
                store.put(key, "v", 30_000)
            for read in (store.fetch_range, store.backward_fetch_range):
                with read(first, "a\x00", 0, 30_000) as windows:
                    found.append([window.key for window, _ in windows])

    spec = Stores.window_store("s", str, str, size=10, retention=300_000, persistent=persistent, cached=True)
    topology.add_processor("uses", Uses, "in", stores=[spec])
    with TopologyTestDriver(topology, {"statestore_cache_max_bytes": cache}) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("r", "1", timestamp=1)
    # On disk, keys are compared with the starts behind them.
    wanted = ["a\x00", "a"] if persistent else ["a", "a\x00"]
    assert found == [wanted, wanted[::-1]]
