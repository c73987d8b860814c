"""A session that was open at the last commit goes on when the records after it are processed once more, although the
changelog already has what they wrote."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from pystreams import App
from pystreams.dsl.windows import SessionWindows
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.abstract_task import AbstractTask
from pystreams.state.layers.session_layer import split_session_key
from tests.unit.runtime.tasks.relay_kit import Pair

TASK, IN = TaskId(0, 0), TopicPartition("in", 0)
OUT, CHANGELOG = TopicPartition("out", 0), TopicPartition("app-sessions-changelog", 0)


def application(*, persistent: bool) -> App:
    app = App("app")
    windows = SessionWindows.of(20_000, grace=80_000)
    sessions = app.stream(IN.topic, key=str, value=str).group_by_key().windowed_by(windows)
    sessions.count(name="sessions", persistent=persistent).to_stream().to(OUT.topic)
    return app


class Members(Pair):
    """Two members with sessions, at least once and without a cache."""

    def __init__(self, folder: Path, *, persistent: bool) -> None:
        app = partial(application, persistent=persistent)
        super().__init__(folder, app, {TASK: frozenset({IN})}, transactional=False, cache_bytes=0)

    def check_task(self, task: AbstractTask) -> None:
        """Only the end counts."""

    def feed(self, key: bytes, *times: int) -> None:
        self.log.partitions[IN] += [(key, b"v", time) for time in times]

    def sessions(self, partition: TopicPartition) -> dict[tuple[bytes, int, int], int]:
        """The last record of each session in a topic."""
        last = {key: value for key, value, _ in self.log.partitions[partition] if key is not None}
        return {
            split_session_key(key): int.from_bytes(value) for key, value in last.items() if value is not None
        }


@pytest.mark.parametrize(
    ("persistent", "disk_lost"), [(True, False), (True, True), (False, True)], ids=["disk", "lost", "memory"]
)
def test_a_session_that_was_open_at_the_last_commit_goes_on_in_repeated_work(
    tmp_path: Path, persistent: bool, disk_lost: bool
) -> None:
    """Behind the commit, the session of b becomes so long that at its end that of a has expired."""
    with closing(Members(tmp_path, persistent=persistent)) as members:
        members.begin()
        members.round(0)
        members.feed(b"a", 150_000)
        members.active.work()
        members.active.commit()
        members.feed(b"b", 150_000)
        members.feed(b"a", 165_000)
        members.feed(b"b", *range(170_000, 280_000, 20_000))
        members.active.work()
        once = {(b"a", 150_000, 165_000): 2, (b"b", 150_000, 270_000): 7}
        assert members.sessions(OUT) == members.sessions(CHANGELOG) == once
        members.crash(0, disk_lost=disk_lost)
        members.round(0)
        # The first record is put to the long session of b, the second one belongs to that of a.
        members.active.work()
        twice = {(b"a", 150_000, 165_000): 3, (b"b", 150_000, 270_000): 14}
        assert members.sessions(OUT) == members.sessions(CHANGELOG) == twice
