"""A task without state waits for its last good snapshot, while its thread goes on; each one is tried once."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TaskId
from pystreams.metrics import names
from pystreams.runtime.snapshots.fetching import PATIENCE_MS
from pystreams.state.snapshots.manifest import FILES_FOLDER, task_folder
from tests.live.support import eventually
from tests.unit.runtime.snapshots.snapshots_kit import HOUR_MS, INTERVAL_MS, TASK, Answers, Client, Hanging

OF_TASK = task_folder("shop", TASK)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000 * HOUR_MS)


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def taken(tmp_path: Path, answers: Answers, clock: ManualClock) -> Client:
    """A client that has left two snapshots, as of the offsets 5 and 6."""
    with Client(tmp_path / "first", answers, clock) as client:
        task = client.open()
        for count, offset in enumerate((5, 6), 1):
            task.commit(offset, b"a" * offset)
            client.taker.look([task])
            eventually(lambda: client.taker._turns[TASK].due_ms is not None, "known")
            clock.advance_ms(INTERVAL_MS)

            def done(count: int = count) -> bool:
                client.taker.look([task])
                return client.metrics.total(names.SNAPSHOTS_TAKEN) == count and not client.taker._copying

            eventually(done, "a snapshot")
    return client


@pytest.fixture
def start(
    tmp_path: Path, taken: Client, answers: Answers, clock: ManualClock
) -> Iterator[Callable[..., Client]]:
    clients: list[Client] = []

    def start(name: str = "second", **settings: object) -> Client:
        clients.append(Client(tmp_path / name, answers, clock, **settings))  # type: ignore[arg-type]
        return clients[-1]

    yield start
    for client in clients:
        client.close()


Start = Callable[..., Client]


def come(client: Client) -> None:
    eventually(lambda: client.fetcher.is_here(TASK), "what there is has come")


def offset_of(client: Client) -> int | None:
    """As of which offset the task opens."""
    come(client)
    task = client.open()
    client.fetcher.opened(TASK)
    offset = task.state.changelog_offset("counts")
    task.state.close()
    return offset


def test_the_one_with_the_highest_offset_is_used(start: Start) -> None:
    client = start()
    assert not client.fetcher.is_here(TASK)
    assert offset_of(client) == 6
    assert client.fetcher.comes_from_snapshot(TASK)
    assert client.metrics.total(names.SNAPSHOTS_USED) == 1
    assert not [path for path in client.scratch.path.iterdir() if path.is_dir()]


def test_local_state_wins(start: Start) -> None:
    client = start()
    task = client.open()
    task.commit(2, b"a")
    task.state.close()
    assert client.fetcher.is_here(TASK)
    assert offset_of(client) == 2
    assert not client.fetcher.comes_from_snapshot(TASK)


def test_a_damaged_one_is_passed_over(start: Start, taken: Client, caplog: pytest.LogCaptureFixture) -> None:
    last, older = taken.manifests()
    only = {file.digest for file in last.files.values()} - {file.digest for file in older.files.values()}
    for digest in only:
        taken.folder.write(f"{OF_TASK}/{FILES_FOLDER}/{digest}", b"damaged")
    assert offset_of(start()) == 5
    assert "is not used: a snapshot cannot be used" in caplog.text
    assert "the file is damaged: its digest is another one" in caplog.text


def test_one_that_does_not_fit_is_passed_over(
    start: Start, answers: Answers, caplog: pytest.LogCaptureFixture
) -> None:
    answers.end = 5
    assert offset_of(start()) == 5
    assert "store counts is as of offset 6 of shop-counts-changelog-0" in caplog.text


def test_without_any_that_fits_the_stores_begin_empty(
    start: Start, answers: Answers, caplog: pytest.LogCaptureFixture
) -> None:
    answers.id = "another"
    client = start()
    assert offset_of(client) is None
    assert caplog.text.count("follows another topic") == 2
    assert "task 0_0: no snapshot in" in caplog.text
    assert client.metrics.total(names.SNAPSHOTS_USED) == 0


def test_state_that_turns_out_to_be_of_no_use_takes_its_snapshot_with_it(start: Start) -> None:
    client = start()
    offsets = []
    for _ in range(3):
        offsets.append(offset_of(client))
        client.fetcher.spoilt(TASK)
        shutil.rmtree(client.directory.task_directory(TASK))
    assert offsets == [6, 5, None]


def test_local_state_that_was_damaged_is_replaced_by_a_snapshot(start: Start) -> None:
    client = start()
    task = client.open()
    task.commit(2, b"a")
    task.state.close()
    client.fetcher.opened(TASK)
    client.fetcher.spoilt(TASK)
    shutil.rmtree(client.directory.task_directory(TASK))
    assert offset_of(client) == 6


def test_a_task_that_has_gone_gets_no_state_any_more(start: Start, tmp_path: Path) -> None:
    folder = Hanging(str(tmp_path / "snapshots"))
    client = start(folder=folder)
    assert not client.fetcher.is_here(TASK)
    assert folder.asked.wait(60)
    client.fetcher.give_up(TASK)
    folder.released.set()
    client.fetcher.close()
    assert not client.directory.task_directory(TASK).exists()


def test_a_task_that_leaves_before_it_was_opened_looks_for_a_snapshot_when_it_comes_back(
    start: Start, answers: Answers
) -> None:
    client = start()
    answers.end = 4
    come(client)
    client.fetcher.give_up(TASK)
    answers.end = 1_000
    assert offset_of(client) == 6


def test_a_storage_that_never_answers_is_not_waited_for_for_ever(
    start: Start, tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Hanging(str(tmp_path / "snapshots"))
    client = start(folder=folder)
    assert not client.fetcher.is_here(TASK)
    clock.advance_ms(PATIENCE_MS - 1)
    assert not client.fetcher.is_here(TASK)
    clock.advance_ms(1)
    assert client.fetcher.is_here(TASK)
    assert "task 0_0 is restored without a snapshot: nothing has come from" in caplog.text
    task = client.open()
    client.fetcher.opened(TASK)
    folder.released.set()
    client.fetcher.close()
    assert task.state.changelog_offset("counts") is None


def test_a_storage_that_fails_for_one_task_does_not_keep_the_next_waiting_for_as_long_again(
    start: Start, tmp_path: Path, clock: ManualClock
) -> None:
    class FailsForTheFirst(Hanging):
        def names(self, folder: str) -> dict[str, int]:
            if folder == OF_TASK:
                first_fails.wait(60)
                raise ConnectionError("no route to the storage")
            return super().names(folder)

    first_fails, other = threading.Event(), TaskId(0, 1)
    folder = FailsForTheFirst(str(tmp_path / "snapshots"))
    client = start(folder=folder)
    assert not client.fetcher.is_here(TASK)
    assert not client.fetcher.is_here(other)
    clock.advance_ms(PATIENCE_MS - 1)
    first_fails.set()
    come(client)
    assert not client.fetcher.is_here(other)
    clock.advance_ms(1)
    assert client.fetcher.is_here(other)
    folder.released.set()


def test_a_storage_that_does_not_answer_keeps_only_its_task_waiting(start: Start, tmp_path: Path) -> None:
    folder = Hanging(str(tmp_path / "snapshots"))
    client = start(folder=folder)
    for _ in range(100):
        assert not client.fetcher.is_here(TASK)
    folder.released.set()
    assert offset_of(client) == 6


def test_a_storage_that_fails_costs_a_warning_and_the_changelog_is_used(
    start: Start, taken: Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start()

    def denied(*_: object) -> None:
        raise PermissionError("the bucket is not yours")

    monkeypatch.setattr(client.folder, "names", denied)
    assert offset_of(client) is None
    assert "task 0_0 is restored without a snapshot" in caplog.text
    assert "PermissionError: the bucket is not yours" in caplog.text


def test_a_log_that_does_not_answer_is_asked_again(
    start: Start, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start()
    asked = 0
    really = answers.end_offsets

    def unavailable(partitions: object) -> object:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise BrokerUnavailableError("the log does not answer")
        return really(partitions)  # type: ignore[arg-type]

    monkeypatch.setattr(answers, "end_offsets", unavailable)
    assert offset_of(client) == 6
    assert asked == 2
