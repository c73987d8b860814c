"""What is held back comes through once and whole, over partitions, caches, stops, lost state and aborts."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from pystreams import Suppressed, TimeWindows, WhenFull
from pystreams.app import App
from pystreams.dsl.windows import SessionWindows
from pystreams.errors import StateError
from tests.live.support import TIMEOUT_S, Log, eventually, run_to_the_end

PARTITIONS = 3
RECORDS = 900
OUTPUTS = ("closed", "sessions", "limited", "early", "joined")
Change = tuple[str, int | None, int]


def history() -> list[Change]:
    """(key, value, timestamp): out of order, sometimes late, now and then a deletion."""
    chance = random.Random(31)
    now, found = 10_000_000, []
    for number in range(RECORDS):
        now += chance.choice((1, 2, 3, 30)) * 100
        delay = chance.choice((0, 0, 0, 200, 700, 4_000))
        found.append((f"k{chance.randrange(12)}", chance.choice((number, number, None)), now - delay))
    return found


def nothing(_value: Any) -> None:
    """Where no record is bad."""


def holding_back(log: Log, check: Callable[[Any], None] = nothing, **settings: Any) -> App:
    settings = {"statestore_cache_max_bytes": 0, **settings}
    app = log.app("holding", num_stream_threads=2, window_changelog_retention_ms=-1, **settings)
    numbers = app.stream("in", key=str, value=int)
    numbers.foreach(check)
    grouped = numbers.group_by_key()

    def add(total: int, value: int | None) -> int:
        return total + (value or 0)

    final = Suppressed.until_window_closes()
    tumbling = grouped.windowed_by(TimeWindows.tumbling(1_000, grace=500)).aggregate(int, add, name="t")
    sessions = grouped.windowed_by(SessionWindows.of(600, grace=300)).aggregate(int, add, add, name="e")
    rows = numbers.to_table(name="rows")
    limited = rows.suppress(Suppressed.until_time_limit(5_000), step="limit")
    joined = rows.left_join(limited, lambda now, before: 10_000 * now + (before or 0), value=int)
    tables: dict[str, Any] = {
        "closed": tumbling.suppress(final),
        "sessions": sessions.suppress(final, step="ended"),
        "limited": limited,
        "early": rows.suppress(Suppressed.until_time_limit(60_000, max_records=2)),
        "joined": joined,
    }
    for topic, table in tables.items():
        table.to_stream().to(topic)
    return app


@pytest.fixture
def logs(new_log: Callable[[str], Log]) -> Callable[[str, list[Change]], Log]:
    def open_log(name: str, records: list[Change]) -> Log:
        log = new_log(name)
        log.create("in", *OUTPUTS, partitions=PARTITIONS)
        log.write("in", records)
        return log

    return open_log


def written(log: Log) -> dict[str, list[Any]]:
    return {topic: log.read(topic, key=bytes, value=bytes) for topic in OUTPUTS}


def test_stops_and_lost_state_change_nothing(logs: Callable[[str, list[Change]], Log]) -> None:
    records = history()
    whole = logs("whole", records)
    run_to_the_end(whole, holding_back(whole))
    expected = written(whole)
    assert all(expected.values())

    parts = logs("parts", records[:400])
    run_to_the_end(parts, holding_back(parts))
    parts.write("in", records[400:650])
    run_to_the_end(parts, holding_back(parts))
    shutil.rmtree(parts.path / "state")
    parts.write("in", records[650:])
    run_to_the_end(parts, holding_back(parts))
    assert written(parts) == expected


def test_what_a_failure_has_cut_off_is_done_again(logs: Callable[[str, list[Change]], Log]) -> None:
    records = history()
    whole = logs("whole", records)
    run_to_the_end(whole, holding_back(whole))
    bad = next(value for _, value, _ in records[500:] if value is not None)

    def refuse(value: int | None) -> None:
        if value == bad:
            raise ValueError("out of order")

    broken = logs("broken", records)
    streams = broken.start(holding_back(broken, refuse, commit_interval_ms=50))
    eventually(lambda: streams.finished, "the application has failed")
    streams.close(1000 * TIMEOUT_S)
    assert "out of order" in str(streams.failure)
    run_to_the_end(broken, holding_back(broken))
    assert written(broken) == written(whole)


def test_each_window_has_one_result_whatever_caches_hold_back(
    logs: Callable[[str, list[Change]], Log],
) -> None:
    for cache_bytes in (0, 1 << 20):
        log = logs(f"cache{cache_bytes}", history())
        run_to_the_end(log, holding_back(log, statestore_cache_max_bytes=cache_bytes, commit_interval_ms=20))
        keys = [key for key, _, _ in log.read("closed", key=bytes, value=bytes)]
        assert keys
        assert len(set(keys)) == len(keys)


def test_a_buffer_without_a_changelog_starts_empty(log: Log) -> None:
    log.create("in", "out")

    def app() -> App:
        made = log.app("holding")
        held = Suppressed.until_time_limit(10, logged=False)
        made.table("in", key=str, value=int).suppress(held).to_stream().to("out")
        return made

    log.write("in", [("a", 1, 100)])
    run_to_the_end(log, app())
    log.write("in", [("b", 2, 200), ("c", 3, 300)])
    run_to_the_end(log, app())
    assert log.read("out") == [("b", 2, 200)]
    assert not [name for name in log.admin.describe_topics() if "SUPPRESS" in name]


def test_its_changelog_is_compacted_and_takes_settings(log: Log) -> None:
    log.create("in", "out")
    app = log.app("holding")
    held = Suppressed.until_time_limit(10, changelog_config={"segment.bytes": "1000000"})
    app.table("in", key=str, value=int).suppress(held, step="calm").to_stream().to("out")
    log.write("in", [("a", 1, 100)])
    run_to_the_end(log, app)
    topic = "holding-calm-store-changelog"
    settings = log.admin.describe_topics([topic])[topic].config
    assert settings["cleanup.policy"] == "compact"
    assert settings["segment.bytes"] == "1000000"


def test_nobody_else_reads_a_buffer(log: Log) -> None:
    log.create("in")
    app = log.app("holding")
    app.table("in", key=str, value=int).suppress(Suppressed.until_time_limit(10), step="calm")
    with (
        closing(log.start(app)) as streams,
        pytest.raises(StateError, match="buffers results that are not final"),
    ):
        streams.store("calm-store")


def test_a_full_buffer_stops_the_application(log: Log) -> None:
    log.create("in")
    app = log.app("holding")
    held = Suppressed.until_time_limit(10, max_records=1, when_full=WhenFull.SHUT_DOWN)
    app.table("in", key=str, value=int).suppress(held)
    log.write("in", [("a", 1, 100), ("b", 2, 100)])
    streams = log.start(app)
    eventually(lambda: streams.finished, "the application has stopped")
    streams.close(1000 * TIMEOUT_S)
    for part in ("2 records of 1", "KTABLE-SUPPRESS", "in-0", "raise max_records="):
        assert part in str(streams.failure)
