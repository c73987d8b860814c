"""Windows, sessions and what they emit when they close are the same with and without a stop, a crash or lost state."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from pystreams.app import App
from pystreams.dsl.windows import EmitStrategy, SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually, run_to_the_end

PARTITIONS = 3
RECORDS = 500
OUTPUTS = (
    "tumbling",
    "hopping-closed",
    "sliding",
    "sliding-closed",
    "sessions",
    "sessions-closed",
    "unlimited",
    "together",
    "sessions-together",
)
Change = tuple[str, int | None, int]


def history(*, late: bool = True) -> list[Change]:
    """(key, value, timestamp): out of order, sometimes late, with gaps that end sessions and whole segments."""
    chance = random.Random(23)
    now, found = 10_000_000, []
    for number in range(RECORDS):
        now += chance.choice((1, 2, 3, 5, 30)) * 100
        if chance.random() < 0.01:
            now += 90_000
        delay = chance.choice((0, 0, 0, 200, 700, 4_000) if late else (0, 0, 200))
        found.append((f"k{chance.randrange(12)}", chance.choice((number, number, None)), now - delay))
    return found


def windowed(log: Log, persistent: bool, check: Callable[[Any], None], **settings: Any) -> App:
    app = log.app("windowed", num_stream_threads=2, window_changelog_retention_ms=-1, **settings)
    numbers = app.stream("in", key=str, value=int)
    numbers.foreach(check)
    grouped = numbers.group_by_key()
    close = EmitStrategy.on_window_close()
    store: dict[str, Any] = {"persistent": persistent}

    def add(total: int, value: int | None) -> int:
        return total + (value or 0)

    tumbling = grouped.windowed_by(TimeWindows.tumbling(1_000, grace=500))
    hopping = grouped.windowed_by(TimeWindows.hopping(2_000, advance=700, grace=500)).emit_strategy(close)
    sliding = grouped.windowed_by(SlidingWindows.of(800, grace=300))
    sliding_closed = grouped.windowed_by(SlidingWindows.of(800, grace=300)).emit_strategy(close)
    sessions = grouped.windowed_by(SessionWindows.of(600, grace=300))
    sessions_closed = grouped.windowed_by(SessionWindows.of(600, grace=300)).emit_strategy(close)
    unlimited = grouped.windowed_by(UnlimitedWindows.of(start=10_100_000))
    cogrouped = grouped.cogroup(add).cogroup(app.stream("other", key=str, value=int).group_by_key(), add)
    tables = {
        "tumbling": tumbling.count(name="t", **store),
        "hopping-closed": hopping.aggregate(int, add, name="hc", **store),
        "sliding": sliding.count(name="s", **store),
        "sliding-closed": sliding_closed.aggregate(int, add, name="sc", **store),
        "sessions": sessions.aggregate(int, add, add, name="e", **store),
        "sessions-closed": sessions_closed.count(name="ec", **store),
        "unlimited": unlimited.count(name="u", **store),
        "together": cogrouped.windowed_by(TimeWindows.tumbling(1_000)).aggregate(int, name="c", **store),
        "sessions-together": cogrouped.windowed_by(SessionWindows.of(600)).aggregate(
            int, add, name="ce", **store
        ),
    }
    for topic, table in tables.items():
        table.to_stream().to(topic)
    return app


def nothing(_value: Any) -> None:
    """Where no record is bad."""


@pytest.fixture
def logs(new_log: Callable[[str], Log]) -> Callable[[str, list[Change]], Log]:
    def open_log(name: str, records: list[Change]) -> Log:
        log = new_log(name)
        log.create("in", "other", *OUTPUTS, partitions=PARTITIONS)
        log.write("in", records)
        return log

    return open_log


def written(log: Log) -> dict[str, list[Any]]:
    return {topic: log.read(topic, key=bytes, value=bytes) for topic in OUTPUTS}


@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_a_stop_in_the_middle_changes_nothing(
    logs: Callable[[str, list[Change]], Log], persistent: bool
) -> None:
    records = history()
    whole = logs("whole", records)
    run_to_the_end(whole, windowed(whole, persistent, nothing, statestore_cache_max_bytes=0))
    expected = written(whole)
    assert all(expected[topic] for topic in OUTPUTS)

    parts = logs("parts", records[:220])
    run_to_the_end(parts, windowed(parts, persistent, nothing, statestore_cache_max_bytes=0))
    parts.write("in", records[220:360])
    run_to_the_end(parts, windowed(parts, persistent, nothing, statestore_cache_max_bytes=0))
    shutil.rmtree(parts.path / "state")
    parts.write("in", records[360:])
    run_to_the_end(parts, windowed(parts, persistent, nothing, statestore_cache_max_bytes=0))
    assert written(parts) == expected


def test_what_a_crash_has_cut_off_is_done_again(logs: Callable[[str, list[Change]], Log]) -> None:
    records = history()
    whole = logs("whole", records)
    run_to_the_end(whole, windowed(whole, True, nothing, statestore_cache_max_bytes=0))

    def refuse(value: int | None) -> None:
        if value == bad:
            raise ValueError("out of order")

    bad = next(value for _, value, _ in records[280:] if value is not None)
    broken = logs("broken", records)
    app = windowed(broken, True, refuse, statestore_cache_max_bytes=0, commit_interval_ms=50)
    streams = broken.start(app)
    eventually(lambda: streams.finished, "the application has failed")
    streams.close(1000 * TIMEOUT_S)
    assert "out of order" in str(streams.failure)
    run_to_the_end(broken, windowed(broken, True, nothing, statestore_cache_max_bytes=0))
    assert written(broken) == written(whole)


def test_caches_do_not_change_what_the_tables_hold_in_the_end(
    logs: Callable[[str, list[Change]], Log],
) -> None:
    # As in Java, a late record may find in a cache what its store does not show any more.
    records = history(late=False)
    contents = []
    for cache_bytes in (0, 2_000, 1 << 20):
        log = logs(f"cache{cache_bytes}", records)
        app = windowed(log, True, nothing, statestore_cache_max_bytes=cache_bytes, commit_interval_ms=20)
        streams = log.start(app)
        caught_up(streams)
        with closing(streams):
            tables = {
                topic: {k: v for k, v in log.table(topic, key=bytes, value=bytes).items() if v is not None}
                for topic in OUTPUTS
            }
        contents.append(tables)
    for topic in OUTPUTS:
        assert contents[1][topic] == contents[0][topic], topic
        assert contents[2][topic] == contents[0][topic], topic
