"""Restoring takes what processing leaves over, and at least a small share."""

from __future__ import annotations

import pytest

from pystreams.runtime.restoring.load import RESTORE_SHARE_MIN, BusyTime, Load


def test_without_processing_a_restore_never_rests() -> None:
    load = Load()
    load.restores("a", at_work=True)
    load.restores("b", at_work=True)
    assert load.pause_ms(20) == 0
    load.processes("one", 0.3)
    assert load.pause_ms(20) == 0


def test_beside_a_busy_thread_a_restore_keeps_to_its_share() -> None:
    load = Load()
    load.restores("a", at_work=True)
    load.processes("one", 1.0)
    worked_ms, rested_ms = 20, load.pause_ms(20)
    assert worked_ms / (worked_ms + rested_ms) == pytest.approx(RESTORE_SHARE_MIN)


def test_threads_that_restore_at_the_same_time_share() -> None:
    load = Load()
    for thread in ("a", "b"):
        load.restores(thread, at_work=True)
    load.processes("one", 0.4)
    load.processes("two", 0.4)
    rested_ms = load.pause_ms(20)
    assert 20 / (20 + rested_ms) == pytest.approx(0.2 / 2)
    load.restores("b", at_work=False)
    assert 20 / (20 + load.pause_ms(20)) == pytest.approx(0.2)


def test_a_thread_that_has_ended_counts_no_more() -> None:
    load = Load()
    load.restores("a", at_work=True)
    load.processes("one", 1.0)
    load.ends("one")
    assert load.pause_ms(20) == 0


def test_a_thread_is_busy_while_it_processes_and_while_it_computes_besides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cpu_ms = iter([1_000.0, 1_350.0, 1_400.0, 3_000.0])
    monkeypatch.setattr("pystreams.runtime.restoring.load.thread_cpu_ms", lambda: next(cpu_ms))
    busy = BusyTime()
    # Records were processed for 500 ms, of which the thread has waited 200 ms for the interpreter; polls took 50 ms.
    busy.processed(400, 200)
    busy.processed(100, 100)
    assert busy.share(1_000) == pytest.approx(0.55)
    assert busy.share(1_000) == pytest.approx(0.05), "what was reported does not count again"
    assert busy.share(1_000) == 1.0
