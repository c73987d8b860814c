"""A history lives on: over partitions, stops, lost state and failures, on disk and in memory."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from pystreams.app import App
from pystreams.serde import INT, STR
from pystreams.state.stores.versioned import VersionedRecord
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually, run_to_the_end

PARTITIONS = 3
KEYS = [f"k{number}" for number in range(8)]
HISTORY = 5_000
OUTPUTS = ("met", "waited", "told")
Change = tuple[str, str, int | None, int]


def history() -> list[Change]:
    """(topic, key, value, timestamp): some late, some later than the history is long."""
    chance = random.Random(17)
    now, found = 10_000_000, []
    for number in range(450):
        now += chance.choice((1, 2, 3)) * 30
        time = now - chance.choice((0, 0, 100, 1_000, 4_000, 9_000))
        value = chance.choice((None, number, number))
        topic = chance.choice(("rows", "asked"))
        found.append((topic, chance.choice(KEYS), value if topic == "rows" else number, time))
    return found


def joining(log: Log, persistent: bool, check: Callable[[Any], None], **settings: Any) -> App:
    app = log.app("versions", num_stream_threads=2, max_task_idle_ms=2_000, **settings)
    rows = app.table("rows", key=str, value=int, name="v", history=HISTORY, persistent=persistent)
    asked = app.stream("asked", key=str, value=int)
    asked.foreach(check)
    asked.left_join(rows, combined, value=int).to("met")
    asked.left_join(rows, combined, value=int, grace=2_000, step="wait").to("waited")
    rows.to_stream().to("told")
    return app


def combined(one: int, row: int | None) -> int:
    return 10_000 * (row or 0) + one


def nothing(_value: Any) -> None:
    """Where no record is bad."""


@pytest.fixture
def logs(new_log: Callable[[str], Log]) -> Callable[[str, list[Change]], Log]:
    def open_log(name: str, records: list[Change]) -> Log:
        log = new_log(name)
        log.create("rows", "asked", *OUTPUTS, partitions=PARTITIONS)
        write(log, records)
        return log

    return open_log


def write(log: Log, records: list[Change]) -> None:
    """Both topics at once: who is running sees all or nothing."""
    encode_key, encode = STR.serializer("in"), INT.serializer("in")
    with closing(log.broker.producer("history", "history")) as producer:
        for topic, key, value, time in records:
            producer.send(topic, None, encode_key(key), None if value is None else encode(value), time, ())
        producer.commit({}, None)


def written(log: Log) -> dict[str, list[Any]]:
    return {topic: log.read(topic, key=bytes, value=bytes) for topic in OUTPUTS}


@pytest.mark.parametrize("persistent", [True, False], ids=["on disk", "in memory"])
def test_stops_and_lost_state_change_nothing(
    logs: Callable[[str, list[Change]], Log], persistent: bool
) -> None:
    records = history()
    whole, parts = logs("whole", []), logs("parts", [])
    streams = whole.start(joining(whole, persistent, nothing))
    for start, end in ((0, 200), (200, 325), (325, len(records))):
        write(whole, records[start:end])
        write(parts, records[start:end])
        caught_up(streams)
        run_to_the_end(parts, joining(parts, persistent, nothing))
        if start == 200:
            shutil.rmtree(parts.path / "state")
    with closing(streams):
        assert written(parts) == written(whole)
    assert all(written(whole).values())


def test_what_a_failure_has_cut_off_is_done_again(logs: Callable[[str, list[Change]], Log]) -> None:
    records = history()
    whole, broken = logs("whole", records), logs("broken", records)
    run_to_the_end(whole, joining(whole, True, nothing))
    bad = next(value for topic, _, value, _ in records[250:] if topic == "asked")

    def refuse(value: int) -> None:
        if value == bad:
            raise ValueError("out of order")

    streams = broken.start(joining(broken, True, refuse, commit_interval_ms=50))
    eventually(lambda: streams.finished, "the application has failed")
    streams.close(1000 * TIMEOUT_S)
    assert "out of order" in str(streams.failure)
    run_to_the_end(broken, joining(broken, True, nothing))
    assert written(broken) == written(whole)


def test_records_that_wait_all_come_though_a_stop_lies_between_equal_ones(log: Log) -> None:
    """A number tells them apart, in the store and its changelog. In Java it begins anew, and the second takes the
    place of the first."""
    log.create("rows", "asked", *OUTPUTS)
    for number in (1, 2):
        log.write("asked", [("a", number, 100)])
        run_to_the_end(log, joining(log, True, nothing))
        shutil.rmtree(log.path / "state")
    log.write("asked", [("z", 3, 5_000)])
    run_to_the_end(log, joining(log, True, nothing))
    assert [record.value for record in log.read("waited")] == [1, 2]


def test_the_changelog_keeps_versions_as_long_as_the_store_and_a_day(log: Log) -> None:
    log.create("rows", "asked", *OUTPUTS)
    log.write("rows", [("a", 1, 100)])
    run_to_the_end(log, joining(log, True, nothing))
    settings = log.admin.describe_topics(["versions-v-changelog"])["versions-v-changelog"].config
    assert settings["cleanup.policy"] == "compact"
    assert settings["min.compaction.lag.ms"] == str(HISTORY + 86_400_000)


def test_versions_can_be_read_from_outside(log: Log) -> None:
    log.create("rows", "asked", *OUTPUTS)
    log.write("rows", [("a", 1, 100), ("a", 2, 200)])
    streams = log.start(joining(log, True, nothing))
    caught_up(streams)
    with closing(streams):
        store = streams.store("v")
        assert store.get("a") == VersionedRecord(2, 200, None)
        assert store.query(lambda one: one.get("a", as_of=150)) == [VersionedRecord(1, 100, 200)]
