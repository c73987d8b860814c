"""Snapshots of tasks are taken now and then, and processing waits neither for them nor for their storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pystreams.clock import ManualClock
from pystreams.errors import StateError
from pystreams.metrics import names
from pystreams.runtime.snapshots.taking import UNCHANGED_MS
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.task_stores import TaskStores
from tests.live.support import eventually
from tests.unit.runtime.snapshots.snapshots_kit import (
    HOUR_MS,
    INTERVAL_MS,
    TASK,
    Answers,
    Client,
    Hanging,
    OpenTask,
    counting,
)

Start = Callable[..., Client]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000 * HOUR_MS)


@pytest.fixture
def start(tmp_path: Path, clock: ManualClock) -> Iterator[Start]:
    clients: list[Client] = []

    def start(name: str = "one", folder: SnapshotFolder | None = None, **settings: object) -> Client:
        app = counting(**settings)
        clients.append(Client(tmp_path / name, Answers(), clock, app=app, folder=folder))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def known(client: Client, task: OpenTask) -> None:
    """Wait until the taker knows when the last snapshot was taken."""
    client.taker.look([task])
    eventually(lambda: client.taker._turns[TASK].due_ms is not None, "the last snapshot is known")


def taken(client: Client, task: OpenTask, count: int) -> None:
    def look() -> bool:
        client.taker.look([task])
        return client.metrics.total(names.SNAPSHOTS_TAKEN) == count and not client.taker._copying

    eventually(look, f"{count} snapshots")


def test_one_is_taken_each_interval_if_the_stores_have_changed(start: Start, clock: ManualClock) -> None:
    client = start()
    task = client.open()
    task.commit(5, b"a")
    known(client, task)
    for _ in range(3):
        client.taker.look([task])
    assert not client.manifests()
    clock.advance_ms(INTERVAL_MS)
    taken(client, task, 1)
    assert [manifest.offsets for manifest in client.manifests()] == [5]
    assert client.metrics.total(names.SNAPSHOT_BYTES_COPIED) == client.manifests()[0].size_bytes

    clock.advance_ms(INTERVAL_MS)
    taken(client, task, 1)
    task.commit(6, b"b")
    clock.advance_ms(INTERVAL_MS - 1)
    taken(client, task, 1)
    clock.advance_ms(1)
    taken(client, task, 2)
    assert [manifest.offsets for manifest in client.manifests()] == [6, 5]
    assert not [path for path in client.scratch.path.iterdir() if path.is_dir()], "no checkpoint stays"


def test_stores_that_do_not_change_are_taken_again_before_their_snapshot_is_too_old(
    start: Start, clock: ManualClock
) -> None:
    client = start()
    task = client.open()
    task.commit(5, b"a")
    known(client, task)
    clock.advance_ms(INTERVAL_MS)
    taken(client, task, 1)
    clock.advance_ms(UNCHANGED_MS - 1)
    taken(client, task, 1)
    clock.advance_ms(INTERVAL_MS)
    taken(client, task, 2)
    first, second = client.manifests()
    assert (first.offsets, second.offsets) == (5, 5)
    assert first.taken_ms - second.taken_ms == UNCHANGED_MS - 1 + INTERVAL_MS
    copied_bytes = client.metrics.total(names.SNAPSHOT_BYTES_COPIED)
    assert copied_bytes < first.size_bytes + second.size_bytes


def test_a_client_that_starts_often_takes_them_all_the_same(start: Start, clock: ManualClock) -> None:
    one = start("one")
    task = one.open()
    task.commit(5, b"a")
    known(one, task)
    clock.advance_ms(INTERVAL_MS)
    taken(one, task, 1)
    clock.advance_ms(INTERVAL_MS // 2)
    two = start("two")
    other = two.open()
    other.commit(7, b"a")
    known(two, other)
    clock.advance_ms(INTERVAL_MS // 2)
    taken(two, other, 1)


def test_stores_in_memory_have_none(start: Start, clock: ManualClock) -> None:
    client = start(persistent=False)
    task = client.open()
    task.commit(5, b"a")
    client.taker.look([task])
    clock.advance_ms(10 * INTERVAL_MS)
    client.taker.look([task])
    assert client.taker._turns[TASK].due_ms is None
    assert not client.manifests()


def test_a_storage_that_does_not_answer_holds_up_nothing(
    start: Start, clock: ManualClock, tmp_path: Path
) -> None:
    folder = Hanging(str(tmp_path / "snapshots"))
    folder.released.set()
    client = start(folder=folder)
    task = client.open()
    task.commit(5, b"a")
    known(client, task)
    folder.released.clear()
    folder.asked.clear()
    clock.advance_ms(INTERVAL_MS)

    def asked() -> bool:
        client.taker.look([task])
        return folder.asked.is_set()

    eventually(asked, "the storage is asked")
    # The task goes on, and its next commits are in no snapshot that has begun before.
    for offset in range(6, 20):
        task.commit(offset, b"a")
        clock.advance_ms(INTERVAL_MS)
        client.taker.look([task])
    assert len(list(client.scratch.path.iterdir())) == 2, "its lock, and one checkpoint"
    folder.released.set()
    taken(client, task, 2)
    assert [manifest.offsets for manifest in client.manifests()] == [19, 5]


def test_a_storage_that_fails_costs_a_warning_and_the_next_one_is_tried(
    start: Start, clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "snapshots"
    client = start(folder=SnapshotFolder(str(blocked)))
    task = client.open()
    task.commit(5, b"a")
    known(client, task)
    blocked.write_text("a file where the folder should be")
    clock.advance_ms(INTERVAL_MS)

    def warned() -> bool:
        client.taker.look([task])
        return "the snapshot of task 0_0 was not written" in caplog.text

    eventually(warned, "a warning")
    blocked.unlink()
    clock.advance_ms(INTERVAL_MS)
    taken(client, task, 1)
    assert [manifest.offsets for manifest in client.manifests()] == [5]


def test_a_client_that_ends_leaves_a_snapshot_out_and_nothing_on_its_disk(
    start: Start, clock: ManualClock, tmp_path: Path
) -> None:
    folder = Hanging(str(tmp_path / "snapshots"))
    folder.released.set()
    with Client(tmp_path / "ending", Answers(), clock, folder=folder) as client:
        task = client.open()
        task.commit(5, b"a")
        known(client, task)
        folder.released.clear()
        folder.asked.clear()
        clock.advance_ms(INTERVAL_MS)

        def asked() -> bool:
            client.taker.look([task])
            return folder.asked.is_set()

        eventually(asked, "the storage is asked")
        client.taker._stop.set()
        folder.released.set()
    assert not client.manifests()
    assert not client.scratch.path.exists()


def test_the_next_start_deletes_what_a_killed_one_has_left(tmp_path: Path, clock: ManualClock) -> None:
    left = tmp_path / "one" / "shop" / "scratch" / "killed" / "checkpoint"
    left.mkdir(parents=True)
    with (
        Client(tmp_path / "one", Answers(), clock) as client,
        Client(tmp_path / "one", Answers(), clock) as other,
    ):
        assert not left.parent.exists()
        assert client.scratch.path.exists()
        assert other.scratch.path.exists()


def test_a_checkpoint_that_fails_leaves_nothing_on_the_disk(
    start: Start, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = start()
    task = client.open()
    task.commit(5, b"a")
    known(client, task)
    clock.advance_ms(INTERVAL_MS)

    def half(path: Path) -> None:
        path.mkdir()
        (path / "CURRENT").write_text("half a checkpoint")
        raise StateError("the disk is full")

    with monkeypatch.context() as full:
        full.setattr(task.state, "checkpoint", half)

        def warned() -> bool:
            client.taker.look([task])
            return "no snapshot of task 0_0 is taken now: the disk is full" in caplog.text

        eventually(warned, "a warning")
    assert not [path for path in client.scratch.path.iterdir() if path.is_dir()]
    clock.advance_ms(INTERVAL_MS)
    taken(client, task, 1)


def test_a_task_that_leaves_during_its_flush_and_comes_back_empty_is_not_taken(
    start: Start, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start()
    task = client.open()
    task.commit(5, b"a")
    known(client, task)
    clock.advance_ms(INTERVAL_MS)
    with monkeypatch.context() as slow:
        slow.setattr(TaskStores, "flushing", True)
        client.taker.look([task])
    task.state.close()
    client.directory.wipe(TASK)
    back = client.open()
    for _ in range(3):
        client.taker.look([back])
        assert not client.taker._copying
    back.commit(7, b"b")
    clock.advance_ms(INTERVAL_MS)
    taken(client, back, 1)
    assert [manifest.offsets for manifest in client.manifests()] == [7]
