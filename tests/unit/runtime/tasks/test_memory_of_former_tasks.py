"""Whatever kind of store a task has in memory, it is as it was when the task has become a standby and has come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pystreams import App, Suppressed, TimeWindows
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.abstract_task import AbstractTask
from tests.unit.runtime.tasks.relay_kit import Pair

INPUT, OUTPUT = TopicPartition("in", 0), TopicPartition("out", 0)
KEYS = [b"a", b"b", b"c", b"d", b"e"]
LATER_MS = 1_000_000


class Held(Pair):
    """One task, whose stores are in memory."""

    def __init__(self, folder: Path, app: Callable[[], App], *, transactional: bool) -> None:
        inputs = {TaskId(0, 0): frozenset({INPUT})}
        super().__init__(folder, app, inputs, transactional=transactional, cache_bytes=0)

    def check_task(self, task: AbstractTask) -> None:
        """The results are what is looked at."""

    def feed(self, key: bytes, time_ms: int) -> None:
        self.log.partitions[INPUT].append((key, b"1", time_ms))
        self.settle()

    def hand_over_and_back(self) -> None:
        for _ in range(2):
            self.hand_over()
            self.settle()

    def results(self) -> list[tuple[bytes | None, bytes | None]]:
        return [(key, value) for key, value, _ in self.log.partitions[OUTPUT]]


@pytest.fixture(params=[True, False], ids=["transactional", "at_least_once"])
def held(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[Callable[[], App]], Held]]:
    opened: list[Held] = []

    def open_it(app: Callable[[], App]) -> Held:
        opened.append(Held(tmp_path, app, transactional=request.param))
        opened[-1].begin()
        opened[-1].settle()
        return opened[-1]

    yield open_it
    for pair in opened:
        with closing(pair):
            pass


def suppressing() -> App:
    app = App("app")
    counts = app.stream("in", key=str, value=str).group_by_key().count(name="counts", persistent=False)
    counts.suppress(Suppressed.until_time_limit(LATER_MS // 2)).to_stream().to("out")
    return app


def test_what_waits_in_a_buffer_is_emitted(held: Callable[[Callable[[], App]], Held]) -> None:
    pair = held(suppressing)
    for number, key in enumerate(KEYS):
        pair.feed(key, number)
    pair.hand_over_and_back()
    assert not pair.results()
    pair.feed(b"later", LATER_MS)
    assert sorted(key for key, _ in pair.results() if key) == KEYS


def limited() -> App:
    app = App("app")
    grouped = app.stream("in", key=str, value=str).group_by_key()
    grouped.count(name="counts", persistent=False, max_entries=2).to_stream().to("out")
    return app


def test_a_store_of_limited_size_keeps_its_limit(held: Callable[[Callable[[], App]], Held]) -> None:
    pair = held(limited)
    for number, key in enumerate([b"a", b"b"]):
        pair.feed(key, number)
    pair.hand_over_and_back()
    for number, key in enumerate([b"c", b"d"]):
        pair.feed(key, 10 + number)
    (task,) = pair.active.tasks().values()
    with task.stores["counts"].all() as entries:
        assert [key for key, _ in entries] == ["c", "d"]


def windowed() -> App:
    app = App("app")
    windows = (
        app.stream("in", key=str, value=str).group_by_key().windowed_by(TimeWindows.tumbling(100, grace=0))
    )
    windows.count(name="counts", persistent=False).to_stream().to("out")
    return app


def test_a_window_counts_on(held: Callable[[Callable[[], App]], Held]) -> None:
    pair = held(windowed)
    for number, key in enumerate(KEYS):
        pair.feed(key, number)
    pair.hand_over_and_back()
    before = len(pair.results())
    pair.feed(b"a", 50)
    pair.feed(b"a", 150)
    pair.feed(b"a", 60)
    counts = [int.from_bytes(value or b"", "big") for _, value in pair.results()[before:]]
    assert counts == [2, 1], "the last record is late, because the time of the task goes on, too"
