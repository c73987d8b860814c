"""At the recording level DEBUG every kind of store works as before, and its operations are measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.clock import SystemClock
from pystreams.metrics import Metrics
from pystreams.record import ContextCell
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.measured_store import StoreMeasures
from pystreams.state.spec import StoreKind
from pystreams.state.task_stores import TaskStores
from tests.unit.state.state_kit import RESOURCES, key_value, timestamped_window
from tests.unit.state.test_every_kind_of_store import CONTEXT, KINDS


def opened(spec, directory: Path, metrics: Metrics | None) -> TaskStores:
    cell = ContextCell()
    cell.record = CONTEXT
    measures = None if metrics is None else StoreMeasures(metrics, SystemClock(), task_id="0_0")
    state = TaskStores.open(
        directory, [spec], cell=cell, log_of=lambda _: None, resources=RESOURCES, measures=measures
    )
    state.attach(ThreadCache(1 << 20))
    return state


def names(metrics: Metrics) -> set[str]:
    return {sample.name for sample in metrics.snapshot()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_measured_store_holds_what_another_holds(kind: StoreKind, tmp_path: Path) -> None:
    spec, write = KINDS[kind]
    held = []
    for place, metrics in enumerate((None, Metrics())):
        state = opened(spec, tmp_path / str(place), metrics)
        try:
            write(state.stores["store"])
            state.flush_caches()
            held.append(list(state.stores["store"].logged()))
        finally:
            state.close()
    assert held[0] == held[1] != []


def test_ranges_are_not_taken_for_reads_of_an_entry(tmp_path: Path) -> None:
    metrics = Metrics()
    state = opened(timestamped_window(cached=True), tmp_path, metrics)
    try:
        store = state.stores["store"]
        store.put("a", (1, 5), 10)
        assert list(store.fetch("a", 0, 100)) == [(10, (1, 5))]
        assert "fetch-rate" not in names(metrics)
        assert store.fetch("a", 10) == (1, 5)
        assert {"fetch-rate", "fetch-latency-avg", "hit-ratio-avg", "put-rate"} <= names(metrics)
    finally:
        state.close()


def test_each_operation_has_javas_name(tmp_path: Path) -> None:
    metrics = Metrics()
    state = opened(key_value(), tmp_path, metrics)
    try:
        store = state.stores["store"]
        store.put("a", "1")
        store.get("a")
        store.put_if_absent("b", "2")
        store.put_all([("c", "3")])
        store.delete("a")
        operations = ("put", "get", "put-if-absent", "put-all", "delete")
        assert {f"{operation}-rate" for operation in operations} <= names(metrics)
    finally:
        state.close()
