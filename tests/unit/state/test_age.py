"""Local content that is older than deletions are kept is not gone on with: it would keep keys that were deleted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError
from pystreams.record import ContextCell, RecordBatch
from pystreams.state.age import Age
from pystreams.state.spec import StoreSpec
from pystreams.state.task_stores import TaskStores
from tests.unit.state.state_kit import RESOURCES, key_value

DAY_MS = 86_400_000


class Disk:
    """A task's directory that is opened at different times."""

    def __init__(self, path: Path) -> None:
        self.path = path / "0_0"
        self.clock = ManualClock(DAY_MS)
        self.asked: list[str] = []

    def open(self, *specs: StoreSpec, kept_ms: Callable[[str], int | None] = lambda _: DAY_MS) -> TaskStores:
        def told(store: str) -> int | None:
            self.asked.append(store)
            return kept_ms(store)

        return TaskStores.open(
            self.path,
            specs or [key_value()],
            cell=ContextCell(),
            log_of=lambda _: lambda *_: None,
            resources=RESOURCES,
            age=Age(self.clock, told),
        )


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def batch(keys: Sequence[bytes], next_offset: int) -> RecordBatch:
    count = len(keys)
    return RecordBatch(
        "log",
        0,
        list(keys),
        [b"v"] * count,
        [0] * count,
        range(next_offset - count, next_offset),
        None,
        next_offset,
    )


def filled(disk: Disk, *specs: StoreSpec) -> None:
    with closing(disk.open(*specs)) as state:
        for store in state.stores:
            state.restore(store, batch([b"a", b"b"], 2))
        state.complete()


def content(state: TaskStores, store: str = "store") -> list[str]:
    with state.stores[store].all() as entries:
        return [key for key, _ in entries]


def test_content_that_is_young_enough_is_gone_on_with(disk: Disk) -> None:
    filled(disk)
    disk.clock.advance_ms(DAY_MS)
    with closing(disk.open()) as state:
        assert (content(state), state.changelog_offset("store")) == (["a", "b"], 2)


def test_content_that_is_too_old_is_restored_from_the_beginning(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    filled(disk)
    disk.clock.advance_ms(DAY_MS + 1)
    with closing(disk.open()) as state:
        assert (content(state), state.changelog_offset("store")) == ([], None)
    assert "store store is restored from the beginning: its local content is 24.0 h old" in caplog.text


def test_a_restore_from_the_beginning_that_is_interrupted_goes_on_where_it_was(disk: Disk) -> None:
    filled(disk)
    disk.clock.advance_ms(DAY_MS + 1)
    with closing(disk.open()) as state:
        state.restore("store", batch([b"a"], 1))
    disk.clock.advance_ms(1_000)
    with closing(disk.open()) as state:
        assert (content(state), state.changelog_offset("store")) == (["a"], 1)


def test_a_restore_that_was_interrupted_long_ago_begins_anew(disk: Disk) -> None:
    with closing(disk.open()) as state:
        state.restore("store", batch([b"a"], 1))
    disk.clock.advance_ms(DAY_MS + 1)
    with closing(disk.open()) as state:
        assert (content(state), state.changelog_offset("store")) == ([], None)


def test_what_commits_or_is_known_to_be_complete_does_not_age(disk: Disk) -> None:
    filled(disk)
    for step in (lambda state: state.commit({"store": 3}), lambda state: state.complete()):
        disk.clock.advance_ms(DAY_MS)
        with closing(disk.open()) as state:
            step(state)
    disk.clock.advance_ms(DAY_MS)
    with closing(disk.open()) as state:
        assert content(state) == ["a", "b"]


def test_only_stores_whose_topic_is_compacted_age(disk: Disk) -> None:
    compacted, kept = key_value("compacted"), key_value("kept")
    filled(disk, compacted, kept)
    disk.clock.advance_ms(10 * DAY_MS)
    kept_ms = {"compacted": DAY_MS, "kept": None}
    with closing(disk.open(compacted, kept, kept_ms=kept_ms.__getitem__)) as state:
        assert content(state, "compacted") == []
        assert content(state, "kept") == ["a", "b"]


def test_a_store_that_nothing_restores_keeps_its_content(disk: Disk) -> None:
    alone = key_value(logged=False)
    with closing(disk.open(alone)) as state:
        state.stores["store"].put("a", "1")
        state.commit({"store": 0})
    disk.clock.advance_ms(10 * DAY_MS)
    with closing(disk.open(alone)) as state:
        assert content(state) == ["a"]
    assert not disk.asked


def test_content_without_a_time_is_gone_on_with(disk: Disk) -> None:
    state = TaskStores.open(
        disk.path, [key_value()], cell=ContextCell(), log_of=lambda _: lambda *_: None, resources=RESOURCES
    )
    with closing(state):
        state.restore("store", batch([b"a"], 1))
    with closing(disk.open()) as state:
        assert content(state) == ["a"]


def test_a_log_that_does_not_answer_leaves_nothing_open(disk: Disk) -> None:
    filled(disk)
    disk.clock.advance_ms(DAY_MS + 1)

    def away(store: str) -> int | None:
        raise BrokerUnavailableError("not now")

    with pytest.raises(BrokerUnavailableError):
        disk.open(kept_ms=away)
    disk.open().close()
