"""Stores that keep headers come out of a backfill with them, whichever way they go."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pystreams import App, JoinWindows, Processor, Record, Stores, Windowed
from pystreams.backfill.api import backfill
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.snapshot import open_snapshot, restore_snapshot, write_snapshot
from pystreams.backfill.sources import EmbeddedSource
from pystreams.errors import TopologyError
from pystreams.ids import TopicPartition
from pystreams.state.formats import AggregationWithHeaders, ValueTimestampHeaders
from pystreams.take_over.last_run import topology_topic
from tests.backfill.kit import Backfill, History, driven, memory, single
from tests.backfill.live import append, create, raw, split
from tests.live.support import Line, Log, run_to_the_end

NewLog = Callable[[str], Log]
STORES = ("keys", "windows", "sessions")


class Keeps(Processor[str, str, str, str]):
    """Puts each record with its headers into three stores, on top of what the first has."""

    def process(self, record: Record[str, str]) -> None:
        store, time = self.context.store, record.timestamp
        before = store("keys").get(record.key)
        headers = (*record.headers, *(() if before is None else before.headers[:2]))
        item = ValueTimestampHeaders(record.value, time, headers)
        store("keys").put(record.key, None if record.value == "gone" else item)
        store("windows").put(record.key, item, time // 10 * 10)
        store("sessions").put(Windowed(record.key, time, time), AggregationWithHeaders(record.value, headers))


def keeping(*, persistent: bool = True, **settings: Any) -> App:
    """Beside it a join of streams, whose stores keep headers on disk if they are asked to, in memory always."""
    usual: dict[str, Any] = {
        "dsl_store_format": "headers",
        "window_changelog_retention_ms": -1,
        "commit_interval_ms": 20,
    }
    app = App("keeps", **(usual | settings))
    common: dict[str, Any] = {"persistent": persistent, "headers": True}
    stores = [
        Stores.timestamped_key_value_store("keys", str, str, **common),
        Stores.timestamped_window_store("windows", str, str, size=10, retention=100_000, **common),
        Stores.session_store("sessions", str, str, retention=100_000, **common),
    ]
    words = app.stream("words", key=str, value=str)
    words.process(Keeps, stores=stores)
    other = app.stream("others", key=str, value=str)
    words.join(
        other,
        lambda one, two: f"{one}{two}",
        windows=JoinWindows.of(20, grace=100_000),
        persistent=persistent,
        value=str,
    ).to("pairs")
    return app


def history(partitions: int = 1) -> History:
    chance = random.Random(7)

    def lines(count: int) -> list[Line]:
        return [
            Line(
                chance.choice(b"abcd").to_bytes(),
                chance.choice([b"x", b"yy", b"gone"]),
                10 * n + chance.randint(0, 15),
                tuple((f"h{i}", chance.choice([None, b"", b"%d" % n])) for i in range(chance.randint(0, 2))),
            )
            for n in range(count)
        ]

    return {topic: [lines(40) for _ in range(partitions)] for topic in ("words", "others")}


@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_a_backfill_computes_what_the_topology_computes(persistent: bool, tmp_path: Path) -> None:
    past = history()
    app = keeping(persistent=persistent, statestore_cache_max_bytes=0)
    found = single(Backfill(app, memory(past, {"pairs": 1}), tmp_path / "staging", commit_records=8).run())
    assert found == driven(app, past)
    assert all(any(entry.headers for entry in of_store) for of_store in found.changelogs.values())


def kept(log: Log) -> dict[TopicPartition, dict[bytes | None, Line]]:
    """The last record of each key in the stores' changelogs, with its headers, where it is not a deletion."""
    found = {}
    names = set(log.admin.describe_topics()) - {topology_topic("keeps")}
    topics = [name for name in names if name.startswith("keeps-") and "changelog" in name]
    for partition in (p for topic in sorted(topics) for p in log.partitions(topic)):
        last = {line.key: line for line in raw(log, partition)}
        found[partition] = {key: line for key, line in last.items() if line.value is not None}
    return found


@pytest.mark.live
@pytest.mark.parametrize("way", ["handed over", "snapshot"])
@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_live_goes_on_with_the_headers(way: str, persistent: bool, new_log: NewLog, tmp_path: Path) -> None:
    past = history(2)
    prefix, rest = split(past, dict.fromkeys((TopicPartition(t, n) for t in past for n in range(2)), 25))
    live, filled = new_log("live"), new_log("filled")
    apps = {
        log: keeping(persistent=persistent, state_dir=log.path / "state", poll_ms=10)
        for log in (live, filled)
    }
    for log in (live, filled):
        create(log, past, ["pairs"])
        append(log, prefix)
    run_to_the_end(live, apps[live])
    append(live, rest)
    run_to_the_end(live, apps[live])

    source = EmbeddedSource(str(filled.path / "log.db"))
    result = Backfill(apps[filled], source, tmp_path / "staging", commit_records=16).run()
    if way == "snapshot":
        write_snapshot(result, tmp_path / "snapshot")
        opened = open_snapshot(tmp_path / "snapshot", apps[filled])
        assert {store: opened.changelog(store) for store in STORES} == {
            s: result.changelog(s) for s in STORES
        }
        restore_snapshot(tmp_path / "snapshot", apps[filled], filled.broker)
    else:
        hand_over(result, filled.broker)
    append(filled, rest)
    run_to_the_end(filled, apps[filled])
    found, expected = kept(filled), kept(live)
    if way == "snapshot" and persistent:
        # What was restored from it was not logged: only what came after.
        expected = {p: {k: line for k, line in of.items() if k in found[p]} for p, of in expected.items()}
    assert found == expected


@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_a_later_backfill_goes_on_with_the_headers(persistent: bool, tmp_path: Path) -> None:
    app, past = keeping(persistent=persistent, statestore_cache_max_bytes=0), history()
    cut = {TopicPartition(topic, 0): 25 for topic in past}
    given: dict[str, Any] = {"sources": memory(past, {"pairs": 1}), "commit_records": 8}
    backfill(app, staging=tmp_path / "first", until=cut, **given)
    second = backfill(app, staging=tmp_path / "second", previous=tmp_path / "first", **given)
    whole = backfill(app, staging=tmp_path / "whole", **given)
    assert {store: second.changelog(store) for store in STORES} == {s: whole.changelog(s) for s in STORES}


def resumed(app: App, folder: Path) -> None:
    Backfill(app, memory(history(), {"pairs": 1}), folder / "staging").run(resume=True)


def gone_on_from(app: App, folder: Path) -> None:
    sources = memory(history(), {"pairs": 1})
    backfill(app, sources=sources, staging=folder / "next", previous=folder / "staging")


def opened(app: App, folder: Path) -> None:
    open_snapshot(folder / "snapshot", app)


@pytest.mark.parametrize("other", [resumed, gone_on_from, opened])
def test_what_is_staged_with_headers_is_not_taken_for_what_is_without(
    other: Callable[[App, Path], None], tmp_path: Path
) -> None:
    result = Backfill(keeping(), memory(history(), {"pairs": 1}), tmp_path / "staging").run()
    write_snapshot(result, tmp_path / "snapshot")
    other(keeping(), tmp_path)
    shutil.rmtree(tmp_path / "next", ignore_errors=True)
    with pytest.raises(
        TopologyError, match=r"stores that keep headers was KSTREAM-.*, now it is keys, "
    ) as refused:
        other(keeping(dsl_store_format="default"), tmp_path)
    assert "begin a new backfill" in refused.value.hint
