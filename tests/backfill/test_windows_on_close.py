"""What has not been emitted when a backfill ends comes with what goes on from it, though its store shows it no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from pystreams.app import App
from pystreams.backfill.api import backfill
from pystreams.dsl.windows import EmitStrategy, SessionWindows
from pystreams.ids import TopicPartition
from tests.backfill.kit import memory
from tests.live.support import Line

START = 1_000_000


def sessions(persistent: bool) -> App:
    app = App("sessions", window_changelog_retention_ms=-1, statestore_cache_max_bytes=0)
    grouped = app.stream("in", key=str, value=str).group_by_key().windowed_by(SessionWindows.of(5))
    counts = grouped.emit_strategy(EmitStrategy.on_window_close()).count(name="s", persistent=persistent)
    counts.to_stream().to("out")
    return app


@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_a_session_of_the_first_run_comes_with_the_second(persistent: bool, tmp_path: Path) -> None:
    # At the end of the first run the session of ``a`` is as old as the retention, and has not closed.
    times = [(b"a", 10), (b"a", 11), (b"b", 16), (b"b", 17)]
    past = {"in": [[Line(key, b"x", START + time) for key, time in times]]}
    first = backfill(
        sessions(persistent),
        sources=memory(past, {"out": 1}),
        staging=tmp_path / "first",
        until={TopicPartition("in", 0): 3},
    )
    assert first.written() == {}
    second = backfill(
        sessions(persistent),
        sources=memory(past, {"out": 1}),
        staging=tmp_path / "second",
        previous=tmp_path / "first",
    )
    [record] = second.sink("out")[0]
    assert record.key is not None
    assert record.key.startswith(b"a")
    assert record.value == (2).to_bytes(8, "big")
