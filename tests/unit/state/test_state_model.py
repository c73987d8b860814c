"""Whatever is done to them, stores show what a dictionary would, and their changelog gives the same again."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from pystreams.serde import BYTES, JsonSerde
from pystreams.state.sorted_map import SortedKeys, TimesByKey
from tests.examples import examples
from tests.unit.state.state_kit import (
    Task,
    batch_of,
    key_value,
    read_all,
    timestamped,
    timestamped_window,
    window,
)

KEYS = st.sampled_from([b"", b"\x00", b"a", b"a\x00", b"aa", b"ab", b"b", b"\xff", b"\xff\xff"])
STARTS = st.integers(0, 6).map(lambda minute: minute * 30_000)
VALUES = st.one_of(st.none(), st.binary(max_size=40))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, STARTS, VALUES),
        st.tuples(st.just("put"), KEYS, STARTS, VALUES),
        st.tuples(st.just("get"), KEYS, STARTS, st.none()),
        st.tuples(st.sampled_from(["range", "flush", "commit", "abort", "restart"]), KEYS, STARTS, KEYS),
    ),
    max_size=60,
)
BUDGETS = st.sampled_from([0, 60, 200, 400, 10_000])
PROPERTY = examples(120, suppress_health_check=[HealthCheck.too_slow])
RETENTION_MS = 10**9


class Run:
    """A task that can be restarted, beside a dictionary of what is visible and one of what is committed."""

    def __init__(self, spec: Any, budget: int, directory: Path | None) -> None:
        self.spec, self.budget, self.directory = spec, budget, directory
        self.task = Task(spec, directory=directory, cache_bytes=budget)
        self.visible: dict[Any, Any] = {}
        self.committed: dict[Any, Any] = {}
        self.log: list[Any] = []

    def set(self, key: Any, value: Any) -> None:
        if value is None:
            self.visible.pop(key, None)
        else:
            self.visible[key] = value

    def commit(self) -> None:
        self.task.commit()
        self.committed = dict(self.visible)
        self.log += self.task.records()
        self.task.changelog.clear()

    def abort(self) -> None:
        self.task.state.abort()
        self.task.changelog.clear()
        self.visible = dict(self.committed)

    def restart(self) -> None:
        if self.directory is None:
            return
        self.task.state.close()
        self.task = Task(self.spec, directory=self.directory, cache_bytes=self.budget)
        self.visible = dict(self.committed)

    def check_changelog(self) -> None:
        self.commit()
        with Task(self.spec) as restored:
            restored.state.restore("store", batch_of(self.log))
            assert read_all(restored.store.all()) == read_all(self.task.store.all())


def run_key_value(run: Run, steps: list[Any]) -> None:
    for step, key, _, argument in steps:
        store = run.task.store
        if step == "put":
            store.put(key, argument)
            run.set(key, argument)
        elif step == "get":
            assert store.get(key) == run.visible.get(key)
        elif step == "range":
            first, last = sorted((key, argument))
            found = sorted((k, v) for k, v in run.visible.items() if first <= k <= last)
            assert read_all(store.range(first, last)) == found
            prefixed = sorted((k, v) for k, v in run.visible.items() if k.startswith(key))
            assert read_all(store.prefix_scan(key)) == prefixed
            # Kafka Streams' reverse scans mistake tombstones that are only in the cache.
            if not store.cached or all(entry.item is not None for entry in store.cache.entries.values()):
                assert read_all(store.reverse_range(first, last)) == found[::-1]
        elif step == "flush":
            run.task.state.flush_caches()
        else:
            getattr(run, step)()
        assert run.task.cache.size_bytes == sum(
            entry.size for entry in (run.task.store.cache.entries if run.task.store.cache else {}).values()
        )
    assert read_all(run.task.store.all()) == sorted(run.visible.items())
    run.check_changelog()


@PROPERTY
@given(steps=STEPS, budget=BUDGETS, persistent=st.booleans(), on_disk=st.booleans(), mutable=st.booleans())
def test_a_key_value_store_is_a_sorted_dictionary(
    steps: list[Any], budget: int, persistent: bool, on_disk: bool, mutable: bool
) -> None:
    value_serde = JsonSerde(bytes) if mutable else BYTES
    spec = key_value(key_serde=BYTES, value_serde=value_serde, cached=True, persistent=persistent)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(spec, budget, Path(folder) / "0_0" if on_disk and persistent else None)
        try:
            run_key_value(run, steps)
        finally:
            run.task.state.close()


def order_of(spec: Any) -> Any:
    interval = max(spec.retention_ms // 2, 60_000)

    def persistent(window_: tuple[bytes, int]) -> Any:
        key, start = window_
        return start // interval, key + start.to_bytes(8, "big")

    return persistent if spec.persistent else lambda window_: (window_[1], window_[0])


def run_windows(run: Run, steps: list[Any]) -> None:
    order = order_of(run.spec)
    for step, key, start, argument in steps:
        store = run.task.store
        if step == "put":
            store.put(key, argument, start)
            run.set((key, start), argument)
        elif step == "get":
            assert store.fetch(key, start) == run.visible.get((key, start))
        elif step == "range":
            span = (start, start + 60_000)
            found = sorted(
                (s, v) for (k, s), v in run.visible.items() if k == key and span[0] <= s <= span[1]
            )
            assert read_all(store.fetch(key, *span)) == found
            first, last = sorted((key, argument))
            windows = [w for w in run.visible if first <= w[0] <= last and span[0] <= w[1] <= span[1]]
            windows.sort(key=order)
            fetched = [((w.key, w.start), v) for w, v in read_all(store.fetch_range(first, last, *span))]
            assert fetched == [(w, run.visible[w]) for w in windows]
            if not store.cached or all(entry.item is not None for entry in store.cache.entries.values()):
                assert read_all(store.backward_fetch(key, *span)) == found[::-1]
                backward = read_all(store.backward_fetch_range(first, last, *span))
                assert [((w.key, w.start), v) for w, v in backward] == fetched[::-1]
        elif step == "flush":
            run.task.state.flush_caches()
        else:
            getattr(run, step)()
    everything = [((w.key, w.start), v) for w, v in read_all(run.task.store.all())]
    assert everything == [(w, run.visible[w]) for w in sorted(run.visible, key=order)]
    run.check_changelog()


@PROPERTY
@given(steps=STEPS, budget=BUDGETS, persistent=st.booleans(), on_disk=st.booleans())
@example(
    steps=[("put", b"", 30_000, b""), ("put", b"\x00", 30_000, b"")],
    budget=200,
    persistent=False,
    on_disk=False,
)
@example(
    steps=[("put", b"a", 30_000, b""), ("range", b"", 0, b"a\x00")],
    budget=200,
    persistent=True,
    on_disk=False,
)
def test_a_window_store_is_a_sorted_dictionary_of_windows(
    steps: list[Any], budget: int, persistent: bool, on_disk: bool
) -> None:
    spec = window(
        key_serde=BYTES, value_serde=BYTES, cached=True, persistent=persistent, retention_ms=RETENTION_MS
    )
    with tempfile.TemporaryDirectory() as folder:
        run = Run(spec, budget, Path(folder) / "0_0" if on_disk and persistent else None)
        try:
            run_windows(run, steps)
        finally:
            run.task.state.close()


@PROPERTY
@given(steps=STEPS, persistent=st.booleans())
def test_a_window_store_shows_what_is_within_retention_and_was_not_too_late(
    steps: list[Any], persistent: bool
) -> None:
    retention_ms, interval = 70_000, 60_000 if persistent else 1
    observed, visible = -1, {}
    spec = window(key_serde=BYTES, value_serde=BYTES, persistent=persistent, retention_ms=retention_ms)
    with Task(spec) as task:
        for step, key, start, value in steps:
            if step == "put":
                task.store.put(key, value, start)
                observed = max(observed, start)
                # A write is dropped with its segment, in memory one millisecond earlier than it is hidden.
                first_live = observed - retention_ms + (not persistent)
                if start // interval >= first_live // interval:
                    visible[key, start] = value
            elif step == "commit":
                task.commit()
            shown = {w: v for w, v in visible.items() if v is not None and w[1] > observed - retention_ms}
            assert {(w.key, w.start): v for w, v in read_all(task.store.all())} == shown
            assert task.store.fetch(key, start) == shown.get((key, start))


@PROPERTY
@given(steps=STEPS, persistent=st.booleans())
def test_stores_with_and_without_a_cache_end_alike(steps: list[Any], persistent: bool) -> None:
    for make in (timestamped, timestamped_window):
        contents = []
        for budget in (0, 64, 130, 10_000):
            spec = make(key_serde=BYTES, value_serde=BYTES, cached=True, persistent=persistent)
            with Task(spec, cache_bytes=budget) as task:
                for number, (step, key, start, value) in enumerate(steps):
                    if step == "put":
                        at = (start,) if make is timestamped_window else ()
                        task.store.write(key, *at, value, number)
                    elif step == "commit":
                        task.commit()
                task.commit()
                last: dict[bytes, Any] = {}
                for key, value, timestamp in task.records():
                    last[key] = (value, timestamp)
                contents.append({key: entry for key, entry in last.items() if entry[0] is not None})
        assert all(content == contents[0] for content in contents)


@PROPERTY
@given(st.lists(st.tuples(st.sampled_from(["add", "drop", "look"]), st.integers(0, 300)), max_size=300))
def test_sorted_keys_follow_their_mapping(steps: list[tuple[str, int]]) -> None:
    source: dict[int, None] = {}
    keys: SortedKeys[int] = SortedKeys(source)
    for step, number in steps:
        if step == "add":
            if number not in source:
                keys.added(number)
            source[number] = None
        elif step == "drop":
            if number in source:
                del source[number]
                keys.removed(number)
        else:
            assert keys.between(number, number + 50, upper_inclusive=True) == [
                key for key in sorted(source) if number <= key <= number + 50
            ]
    assert keys.between(None, None, upper_inclusive=True) == sorted(source)
    assert list(keys.walk(7)) == [key for key in sorted(source) if key >= 7]


@PROPERTY
@given(st.lists(st.tuples(st.booleans(), KEYS, st.integers(0, 5)), max_size=100))
def test_times_by_key_follow_their_mapping(steps: list[tuple[bool, bytes, int]]) -> None:
    source: dict[tuple[bytes, int], None] = {}
    times = TimesByKey(source, lambda window_: (*window_, 0))
    for add, key, start in steps:
        if add:
            if (key, start) not in source:
                source[key, start] = None
                times.added((key, start))
        elif (key, start) in source:
            del source[key, start]
            times.removed((key, start))
        found = [window_ for _, _, window_ in times.between(key, 1, 4)]
        assert found == sorted(window_ for window_ in source if window_[0] == key and 1 <= window_[1] <= 4)
