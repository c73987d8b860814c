"""What a store knows of time outlives its process, also where time has moved without a write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pystreams.state.spec import StoreSpec
from pystreams.state.stores.factory import Stores
from pystreams.stream_time import NO_TIME, TIME_MAX
from pystreams.windowed import Windowed
from tests.unit.state.state_kit import Task, batch_of, session, timestamped_window

VERSIONED = Stores.versioned_store("store", str, str, history=1_000)
EXPIRING = pytest.mark.parametrize(
    "spec", [timestamped_window(), session(), VERSIONED], ids=lambda spec: spec.kind
)


def put(task: Task, time: int) -> None:
    store = task.store
    if store.spec.kind == "session":
        store.put(Windowed("a", time, time), "x")
    elif store.spec.kind == "versioned":
        store.put("a", "x", time)
    else:
        store.put("a", (1, time), time)


def time_of(task: Task) -> int:
    """The time in force of the only store."""
    layer = task.state._parts["store"].layer
    time: int = layer.time.ms
    return time


def commit_what_is_beyond_the_bound(task: Task) -> None:
    """5,000 was seen, and 10 is in force."""
    task.cell.time.limit(10)
    put(task, 5_000)
    task.commit()


def raise_bound(task: Task, bound_ms: int) -> None:
    task.cell.time.limit(bound_ms)
    task.cell.time.flushed(task.state.flush_caches)


@EXPIRING
def test_a_time_that_only_a_bound_has_moved_is_kept(spec: StoreSpec, tmp_path: Path) -> None:
    with Task(spec, directory=tmp_path / "0_0") as task:
        commit_what_is_beyond_the_bound(task)
        assert time_of(task) == 10
        raise_bound(task, TIME_MAX)
        task.commit()
        assert time_of(task) == 5_000
    with Task(spec, directory=tmp_path / "0_0") as task:
        assert time_of(task) == 5_000


def opened_behind_a_bound(spec: StoreSpec, folder: Path) -> Task:
    """As a task starts whose stream time waits for others."""
    task = Task(spec, directory=folder)
    raise_bound(task, NO_TIME)
    return task


@EXPIRING
def test_what_was_seen_beyond_the_bound_comes_into_force_after_a_restart(
    spec: StoreSpec, tmp_path: Path
) -> None:
    with Task(spec, directory=tmp_path / "0_0") as task:
        commit_what_is_beyond_the_bound(task)
    with opened_behind_a_bound(spec, tmp_path / "0_0") as task:
        assert time_of(task) == 10
        raise_bound(task, 4_000)
        assert time_of(task) == 4_000
        raise_bound(task, TIME_MAX)
        assert time_of(task) == 5_000


@EXPIRING
def test_a_restore_takes_what_was_seen_by_the_last_commit_from_the_changelog(
    spec: StoreSpec, tmp_path: Path
) -> None:
    """What comes later there is processed again."""
    with Task(spec, directory=tmp_path / "lost") as task:
        for time in (10, 5_000, 9_000):
            put(task, time)
        records = task.records()
    with opened_behind_a_bound(spec, tmp_path / "0_0") as task:
        task.state.limit_time(10, 5_000)
        task.state.restore("store", batch_of(records))
        assert time_of(task) == 10
        raise_bound(task, TIME_MAX)
        assert time_of(task) == 5_000


@EXPIRING
def test_work_that_is_undone_leaves_what_was_seen_before(spec: StoreSpec, tmp_path: Path) -> None:
    with Task(spec, directory=tmp_path / "0_0") as task:
        commit_what_is_beyond_the_bound(task)
        put(task, 9_000)
        task.state.abort()
        raise_bound(task, TIME_MAX)
        assert time_of(task) == 5_000


def restore_ahead_of_the_commit(task: Task) -> None:
    """The changelog has come to 5,000, and it is known that 10 was committed."""
    task.state.limit_time(10, 10)
    put(task, 5_000)
    records = task.records()
    task.state.abort()
    task.state.restore("store", batch_of(records))
    assert time_of(task) == 10


@EXPIRING
def test_a_time_that_was_restored_ahead_of_the_commit_comes_into_force_with_it(spec: StoreSpec) -> None:
    with Task(replace(spec, persistent=False)) as task:
        restore_ahead_of_the_commit(task)
        task.state.limit_time(4_000, 4_000)
        assert time_of(task) == 4_000
        task.state.limit_time(TIME_MAX, TIME_MAX)
        assert time_of(task) == 5_000


@EXPIRING
def test_a_time_that_was_restored_ahead_of_the_commit_outlives_the_process(
    spec: StoreSpec, tmp_path: Path
) -> None:
    """A standby may restart when it has read a changelog, and before it hears of the commit: then nothing is left to
    be read that would show the time."""
    with Task(spec, directory=tmp_path / "0_0") as task:
        restore_ahead_of_the_commit(task)
    with Task(spec, directory=tmp_path / "0_0") as task:
        assert time_of(task) == 10
        task.state.limit_time(4_000, 4_000)
        assert time_of(task) == 4_000
        task.state.limit_time(TIME_MAX, TIME_MAX)
        assert time_of(task) == 5_000


@EXPIRING
def test_while_work_is_repeated_the_time_goes_no_further_than_its_records(
    spec: StoreSpec, tmp_path: Path
) -> None:
    """What they find and write anew may be later: entries that they need would expire."""
    with Task(spec, directory=tmp_path / "0_0") as task:
        restore_ahead_of_the_commit(task)
        task.at(20)
        put(task, 5_000)
        assert time_of(task) == 20
        task.commit()
    with Task(spec, directory=tmp_path / "0_0") as task:
        task.state.limit_time(20, 20)
        task.at(30)
        put(task, 4_000)
        task.at(25)
        put(task, 4_000)
        assert time_of(task) == 30
        task.state.abort()
        assert time_of(task) == 20
        task.at(5_000)
        put(task, 5_000)
        assert time_of(task) == 5_000
        # From now on programs may write ahead of their records.
        put(task, 7_000)
        assert time_of(task) == 7_000
        task.state.abort()
        task.at(40)
        put(task, 7_000)
        assert time_of(task) == 40
