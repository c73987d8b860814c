"""Rows of declared aggregates survive stops and lost state, and are readable in their changelogs."""

from __future__ import annotations

import json
import random
import shutil
from typing import Any

import msgspec

from pystreams import SessionWindows, TimeWindows, agg
from pystreams.app import App
from tests.live.support import Log, run_to_the_end

OUTPUTS = ("rows", "windows", "sessions")


class Sale(msgspec.Struct):
    cents: int
    city: str


def sales() -> list[tuple[str, Sale, int]]:
    """(key, sale, timestamp), out of order."""
    chance = random.Random(3)
    return [
        (
            f"k{chance.randrange(4)}",
            Sale(chance.randrange(90), f"c{chance.randrange(30)}"),
            1_000 + 7 * n - late,
        )
        for n, late in enumerate(chance.choices((0, 0, 40, 300), k=300))
    ]


def app(log: Log) -> App:
    shop = log.app("shop", window_changelog_retention_ms=-1)
    grouped = shop.stream("sales", key=str, value=Sale).group_by_key()
    fields = {
        "n": agg.count(),
        "mean": agg.mean("cents"),
        "first": agg.first("city"),
        "last": agg.last("city"),
        "cities": agg.approx_distinct("city"),
        "best": agg.top(2, "city", by="cents"),
    }
    windows, sessions = TimeWindows.tumbling(100, grace=500), SessionWindows.of(20, grace=500)
    grouped.aggregate(**fields, name="by-key").to_stream().to("rows")
    grouped.windowed_by(windows).aggregate(**fields, name="by-time").to_stream().to("windows")
    grouped.windowed_by(sessions).aggregate(**fields, name="by-session").to_stream().to("sessions")
    return shop


def results(log: Log) -> dict[str, Any]:
    """The last row of each key. Which sessions are also seen before they are merged is up to the cache."""
    tables = {topic: log.table(topic, key=bytes, value=dict) for topic in OUTPUTS}
    return {topic: {k: row for k, row in table.items() if row is not None} for topic, table in tables.items()}


def opened(log: Log) -> Log:
    log.create("sales", *OUTPUTS)
    return log


def test_stops_and_lost_state_change_no_row(new_log: Any) -> None:
    records = sales()
    whole, parts = opened(new_log("whole")), opened(new_log("parts"))
    whole.write("sales", records, value=Sale)
    run_to_the_end(whole, app(whole))
    for part in (records[:100], records[100:200], records[200:]):
        parts.write("sales", part, value=Sale)
        run_to_the_end(parts, app(parts))
        if part[0] is records[100]:
            shutil.rmtree(parts.path / "state")
    assert results(parts) == results(whole)
    assert sum(row["n"] for row in results(parts)["rows"].values()) == len(records)
    assert len(results(parts)["sessions"]) > 30


def test_the_changelog_has_the_states_as_json(log: Log) -> None:
    opened(log).write(
        "sales",
        [("a", Sale(4, "Rome"), 20), ("a", Sale(8, "Oslo"), 10), ("a", Sale(6, "Rome"), 30)],
        value=Sale,
    )
    run_to_the_end(log, app(log))
    stored = json.loads(log.table("shop-by-key-changelog", value=bytes)["a"])
    registers = stored["cities"].pop("registers")
    assert isinstance(registers, str)
    assert stored == {
        "n": 3,
        "mean": {"sum": 18, "count": 3},
        "first": {"at": 10, "value": "Oslo"},
        "last": {"at": 30, "value": "Rome"},
        "cities": {"about": 2},
        "best": [{"value": "Oslo", "by": 8}, {"value": "Rome", "by": 6}],
    }
    assert results(log)["rows"][b"a"] == {
        "n": 3,
        "mean": 6.0,
        "first": "Oslo",
        "last": "Rome",
        "cities": 2,
        "best": ["Oslo", "Rome"],
    }
