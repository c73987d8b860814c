"""What windows leave behind is what Kafka Streams leaves: how far emission came, and the changelogs' settings. And they
can be read from outside."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from pystreams import EmitStrategy, SessionWindows, TimeWindows, UnlimitedWindows, Windowed
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.ids import TopicPartition
from tests.live.support import Log, caught_up, run_to_the_end

DAY_MS = 86_400_000


def grouped(log: Log, name: str) -> Any:
    app = log.app(name, allow_expired=True)
    return app, app.stream("in", key=str, value=int).group_by_key()


def test_how_far_emission_came_is_kept_under_the_stores_name(log: Log) -> None:
    log.create("in", "out", "sessions")
    log.write("in", [("a", 1, 1_000), ("a", 1, 5_700)])

    def program() -> Any:
        app, numbers = grouped(log, "closing")
        close = EmitStrategy.on_window_close()
        tumbling = numbers.windowed_by(TimeWindows.tumbling(1_000, grace=300)).emit_strategy(close)
        tumbling.count(name="t", retention=DAY_MS).to_stream().to("out")
        sessions = numbers.windowed_by(SessionWindows.of(200, grace=100)).emit_strategy(close)
        sessions.count(name="s", retention=DAY_MS).to_stream().to("sessions")
        return app

    run_to_the_end(log, program())
    entries = OffsetMetadata.decode(log.committed("closing")[TopicPartition("in", 0)].metadata).entries
    assert (entries["t"], entries["s"]) == (5_400, 5_400)
    log.write("in", [("a", 1, 5_800), ("a", 1, 9_000)])
    run_to_the_end(log, program())
    assert [record.timestamp for record in log.read("out", key=bytes)] == [1_000, 5_800]
    assert [record.timestamp for record in log.read("sessions", key=bytes)] == [1_000, 5_800]


def test_changelogs_keep_sessions_for_retention_and_a_day_and_unlimited_windows_for_ever(log: Log) -> None:
    log.create("in")
    app, numbers = grouped(log, "kept")
    numbers.windowed_by(SessionWindows.of(200, grace=100)).count(name="s")
    numbers.windowed_by(UnlimitedWindows.of(start=2 * DAY_MS)).count(name="u")
    log.write("in", [("a", 1, 1_000)])
    run_to_the_end(log, app)
    topics = log.admin.describe_topics(["kept-s-changelog", "kept-u-changelog"])
    configs = [topics[name].config for name in ("kept-s-changelog", "kept-u-changelog")]
    assert [config["cleanup.policy"] for config in configs] == ["compact,delete", "compact,delete"]
    assert [int(config["retention.ms"]) for config in configs] == [DAY_MS + 300, 2**63 - 1]


def test_sessions_can_be_read_from_outside(log: Log) -> None:
    log.create("in")
    app, numbers = grouped(log, "read")
    numbers.windowed_by(SessionWindows.of(200)).count(name="s", retention=DAY_MS)
    log.write("in", [("a", 1, 1_000), ("a", 1, 1_100), ("b", 1, 2_000)])
    streams = log.start(app)
    with closing(streams):
        caught_up(streams)
        store = streams.store("s")
        assert store.find_sessions("a", 1_100, 1_000) == [(Windowed("a", 1_000, 1_100), 2)]
        assert store.find_sessions("a", 1_101, 2_000) == []
        assert {window.key for window, _ in store.all()} == {"a", "b"}
