"""Versioned stores are handed over with all their versions: what is asked of a time has its answer after it, too."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.exchange.store_entries import StoreEntry, by_time
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.handover.publishing import PublishStore
from pystreams.backfill.sources import EmbeddedSource
from pystreams.broker.port import Broker
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from tests.backfill.kit import Backfill, lines
from tests.backfill.live import SETTINGS, append, create, raw, visible
from tests.backfill.programs import joined_versions
from tests.live.support import Log, run_to_the_end

NewLog = Callable[[str], Log]

CHANGELOG = TopicPartition("versions-names-by-time-changelog", 0)
#: "a" has three versions, one of which came late; "b" was deleted; "c" was deleted at the time of its only version.
NAMES = [
    ("a", "one", 10),
    ("b", "two", 20),
    ("a", "three", 60),
    ("b", None, 65),
    ("a", "late", 30),
    ("c", "gone", 70),
    ("c", None, 70),
]
PAST = {"names": [lines(NAMES, value=str)], "amounts": [lines([("a", 1, 5)])]}


def program(log: Log) -> Any:
    return joined_versions(**SETTINGS, state_dir=log.path / "state")


def backfilled(log: Log, staging: str, **given: Any) -> BackfillResult:
    source = EmbeddedSource(str(log.path / "log.db"))
    return Backfill(program(log), source, log.path / staging, **given).run()


def shown(log: Log) -> list[Any]:
    """What a store restored from the changelog shows."""
    (spec,) = (
        one for one in Backfill(program(log), EmbeddedSource(str(log.path / "log.db")), log.path).loaded.built.stores
        if one.kind == "versioned"
    )  # fmt: skip
    return [(entry.key, entry.value, entry.timestamp) for entry in visible(raw(log, CHANGELOG), spec)]


@pytest.fixture
def log(new_log: NewLog) -> Log:
    made = new_log("log")
    create(made, PAST, ["sums"])
    append(made, PAST)
    return made


ALL = [
    (b"a", b"one until 30", 10),
    (b"a", b"late until 60", 30),
    (b"a", b"three until -1", 60),
    (b"b", b"two until 65", 20),
]


@pytest.mark.live
def test_all_versions_are_in_the_changelog_in_the_order_of_time(log: Log) -> None:
    result = backfilled(log, "staging")
    hand_over(result, log.broker)
    written = [(line.key, line.value, line.timestamp) for line in raw(log, CHANGELOG)]
    assert written == [
        (b"a", b"one", 10),
        (b"b", b"two", 20),
        (b"a", b"late", 30),
        (b"a", b"three", 60),
        (b"b", None, 65),
        # Nothing is left of "c" but that it was the latest: so late is what comes before 10 now.
        (b"", b"", 70),
        (b"", None, 70),
    ]
    assert shown(log) == ALL
    assert [entry.value for entry in result.changelog("names-by-time")[0]][-1] is None


@pytest.mark.live
def test_what_an_earlier_run_has_left_is_gone(log: Log) -> None:
    append(log, {"names": [lines([("a", "later", 500), ("d", "new", 510)], value=str)]})
    run_to_the_end(log, program(log))
    assert (b"d", b"new until -1", 510) in shown(log)
    ends = {TopicPartition("names", 0): len(NAMES), TopicPartition("amounts", 0): 1}
    result = backfilled(log, "staging", until=ends)
    done = hand_over(result, log.broker).stores["names-by-time"]
    assert (done.written, done.unchanged, done.deleted) == (7, 0, 0)
    assert shown(log) == ALL
    # A second backfill, with another cut.
    hand_over(backfilled(log, "whole"), log.broker)
    assert (b"d", b"new until -1", 510) in shown(log)


def _publisher(log: Log, result: BackfillResult, attempt: str) -> PublishStore:
    return PublishStore(
        log.broker.opener(), "versions", "names-by-time", CHANGELOG.topic, attempt, 0, versions=True
    )


@pytest.mark.live
def test_a_publisher_that_was_killed_is_gone_on_with(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    result = backfilled(log, "staging")
    attempt = hand_over(result, log.broker).attempt
    once = raw(log, CHANGELOG)
    rows = result.store_rows("names-by-time")
    publish = _publisher(log, result, attempt)
    # All was written, and nobody heard of it.
    assert publish(0, result.rows(rows, 0)) == b"[0, 7, 0]"
    assert raw(log, CHANGELOG) == once
    # A part of it was written.
    log.admin.delete_topics([CHANGELOG.topic])
    log.create(CHANGELOG.topic, partitions=1)
    _write(log.broker, once[:3])
    assert publish(0, result.rows(rows, 0)) == b"[4, 3, 0]"
    assert raw(log, CHANGELOG) == once


@pytest.mark.live
def test_what_somebody_else_has_written_meanwhile_is_refused(log: Log) -> None:
    result = backfilled(log, "staging")
    attempt = hand_over(result, log.broker).attempt
    _write(log.broker, raw(log, CHANGELOG)[:1])
    with pytest.raises(StateError, match="records that this hand-over did not write"):
        _publisher(log, result, attempt)(0, result.rows(result.store_rows("names-by-time"), 0))


def _write(broker: Broker, records: list[Any]) -> None:
    with closing(broker.producer("somebody", "somebody")) as producer:
        for record in records:
            producer.send(*CHANGELOG, *record)
        producer.commit({}, None)


@pytest.mark.parametrize("max_bytes", [10**9, 0, 20_000])
def test_entries_are_sorted_by_time_in_memory_and_on_the_disk(max_bytes: int, tmp_path: Path) -> None:
    chance = random.Random(3)
    entries: list[StoreEntry] = []
    for number in range(500):
        key = b"k" * chance.randrange(4)
        value = None if chance.random() < 0.2 else b"%d" % number
        entries.append((key, value, chance.randrange(50)))
    found = list(by_time(entries, tmp_path, max_bytes))
    # Those of one key and time stay as they came.
    assert found == sorted(entries, key=lambda entry: (entry[2], entry[0]))
    assert list(tmp_path.iterdir()) == []
