"""A backfill holds back what live would hold back at the cut, and live lets it go."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from pystreams import Suppressed, TimeWindows
from pystreams.app import App
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import EmbeddedSource
from pystreams.ids import TopicPartition
from tests.backfill.kit import Backfill, History
from tests.backfill.live import append, create, left_on, raw, split, with_sinks_before
from tests.live.support import Line, Log, run_to_the_end

pytestmark = pytest.mark.live

PARTITIONS = 2
OUTPUTS = ["closed", "calm"]


def program(log: Log) -> Any:
    app = App(
        "held",
        statestore_cache_max_bytes=0,
        max_task_idle_ms=0,
        commit_interval_ms=20,
        window_changelog_retention_ms=-1,
        state_dir=log.path / "state",
    )
    rows = app.table("in", key=str, value=str)
    counts = rows.to_stream().group_by_key().windowed_by(TimeWindows.tumbling(100, grace=50)).count(name="c")
    counts.suppress(Suppressed.until_window_closes(), step="final").to_stream().to("closed")
    rows.suppress(Suppressed.until_time_limit(70), step="calm-rows").to_stream().to("calm")
    return app


def history() -> History:
    chance = random.Random(3)
    lines: list[list[Line]] = [[] for _ in range(PARTITIONS)]
    for number in range(400):
        place = chance.randrange(PARTITIONS)
        key = f"k{chance.randrange(6)}-{place}".encode()
        value = chance.choice((None, b"%d" % number, b"%d" % number))
        headers = chance.choice(((), (("h", b"x"),)))
        lines[place].append(Line(key, value, 1_000 + 5 * number - chance.choice((0, 0, 40, 90)), headers))
    return {"in": lines}


@pytest.mark.parametrize("cut", [0, 57, 130])
def test_live_goes_on_with_what_the_backfill_has_held_back(cut: int, new_log: Callable[[str], Log]) -> None:
    past = history()
    at = {TopicPartition("in", number): cut for number in range(PARTITIONS)}
    prefix, rest = split(past, at)
    live, handed = new_log("live"), new_log("handed")
    for log in (live, handed):
        create(log, past, OUTPUTS)
        append(log, prefix)
    run_to_the_end(live, program(live))
    append(live, rest)
    run_to_the_end(live, program(live))

    source = EmbeddedSource(str(handed.path / "log.db"))
    staging = handed.path / "staging"
    result = Backfill(program(handed), source, staging, until=at, commit_records=16).run()
    hand_over(result, handed.broker)
    held = [line for p in handed.partitions("held-final-store-changelog") for line in raw(handed, p)]
    assert bool(held) == (cut > 0)
    assert all(line.headers == (("v", b"\x03"),) for line in held)
    append(handed, rest)
    run_to_the_end(handed, program(handed))

    found = with_sinks_before(result, left_on(handed, program(handed), OUTPUTS))
    expected = left_on(live, program(live), OUTPUTS)
    assert unordered(found) == unordered(expected)
    assert found.offsets == expected.offsets
    assert untimed(found) == untimed(expected)
    assert any(found.sinks.values())


def unordered(left: Any) -> dict[TopicPartition, list[Any]]:
    """Sinks as sets: both tasks write to each partition."""
    return {partition: sorted(records, key=repr) for partition, records in left.sinks.items()}


def untimed(left: Any) -> dict[TopicPartition, list[tuple[bytes, bytes]]]:
    """Changelogs without timestamps: a buffer's records have the wall clock's."""
    return {partition: [(e.key, e.value) for e in entries] for partition, entries in left.changelogs.items()}
