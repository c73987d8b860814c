"""Records that an application could not process are replayed to the corrected application, which counts each once."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from pystreams import App, TimeWindows
from tests.live.replay_kit import replay
from tests.live.support import Log, run_to_the_end

DEAD = {"errors_dead_letter_queue_topic_name": "dead"}


def numbers(log: Log, parse: Any) -> App:
    """Counts, by key, the records whose values ``parse`` takes."""
    app = log.app("numbers", processing_exception_handler="dead_letter", **DEAD)
    parsed = app.stream("in", key=str, value=str).map_values(parse, step="parse", value=int)
    parsed.group_by_key().count(name="counts").to_stream().to("out", key=str, value=int)
    return app


def strict(value: str) -> int:
    return int(value)


def patient(value: str) -> int:
    return int(value, 16)


@pytest.mark.both_logs
def test_a_corrected_application_counts_each_record_once(log: Log) -> None:
    log.create("in", "out", "dead", partitions=2)
    values = ["1", "ff", "2", "xyz", "aa", "3"]
    log.write("in", [(f"k{n % 2}", value, n) for n, value in enumerate(values)], value=str)
    run_to_the_end(log, numbers(log, strict))
    assert len(log.read("dead", value=str)) == 3
    assert replay(log) == 0
    run_to_the_end(log, numbers(log, patient))
    counts = log.table("out")
    assert sum(counts.values()) == 5, "all but xyz, which fails again"
    assert len(log.read("dead", value=str)) == 4
    assert replay(log, "--error", "ValueError") == 0
    last = [line for partition in log.partitions("in") for line in log.lines(partition).values()]
    again = [dict(line.headers) for line in last if line.value == b"xyz"]
    assert [headers.get("__pystreams.replays") for headers in again] == [None, b"1", b"2"]


@pytest.mark.both_logs
def test_each_record_is_written_once_however_often_the_replay_is_killed(log: Log) -> None:
    log.create("in", "out", partitions=2)
    log.create("dead", partitions=3)
    written = [(f"k{n % 5}", f"x{n}", n) for n in range(60)]
    log.write("in", written, value=str)
    run_to_the_end(log, numbers(log, strict))
    before = {partition: list(log.lines(partition).values()) for partition in log.partitions("in")}
    for when, commit in (("before", 3), ("after", 1), ("before", 1)):
        assert replay(log, kill=(when, commit)) == -signal.SIGKILL
    assert replay(log) == 0
    assert replay(log) == 0
    for partition, records in before.items():
        found = list(log.lines(partition).values())
        replayed = found[len(records) :]
        assert sorted(line.value for line in replayed) == sorted(line.value for line in records)
        assert {line.timestamp for line in replayed} == {line.timestamp for line in records}
        for key in {line.key for line in records}:
            of_key = [line.value for line in replayed if line.key == key]
            assert of_key == [line.value for line in records if line.key == key], "each key's in order"


@pytest.mark.both_logs
def test_a_late_record_is_replayed_to_another_topic_or_is_late_again(log: Log) -> None:
    log.create("in", "late", "dead")

    def counting(name: str, topic: str, grace: int) -> App:
        settings: dict[str, Any] = {"dead_letter_dropped_records": True, "window_changelog_retention_ms": -1}
        app = log.app(name, **settings, **DEAD)
        windows = TimeWindows.tumbling(10, grace=grace)
        app.stream(topic, key=str, value=int).group_by_key().windowed_by(windows).count(step="count")
        return app

    log.write("in", [("a", 1, 5), ("a", 2, 100), ("a", 3, 6)])
    run_to_the_end(log, counting("first", "in", 0))
    assert replay(log, "--step", "count", "--to", "late") == 0
    assert log.read("late") == [("a", 3, 6)]
    assert run_to_the_end(log, counting("corrections", "late", 0)).left_out == {}
    log.write("in", [("a", 4, 7)])
    run_to_the_end(log, counting("first", "in", 0))
    assert replay(log) == 0
    again = run_to_the_end(log, counting("first", "in", 0))
    assert again.late_records[0].records == 1
    assert [record.value for record in log.read("in")] == [1, 2, 3, 4, 4]
    assert replay(log) == 0
    assert [record.value for record in log.read("in")] == [1, 2, 3, 4, 4, 4]


def test_a_record_behind_an_internal_topic_returns_to_it(log: Log) -> None:
    log.create("in", "out", "dead", partitions=2)

    def rekeyed(parse: Any) -> App:
        app = log.app("rekeyed", processing_exception_handler="dead_letter", **DEAD)
        by_value = app.stream("in", key=str, value=str).select_key(lambda _, value: value, key=str)
        parsed = by_value.repartition(name="values", key=str, value=str).map_values(parse, value=int)
        parsed.to("out", key=str, value=int)
        return app

    log.write("in", [("a", "1", 1), ("a", "ff", 2), ("b", "2", 3), ("b", "ee", 4)], value=str)
    run_to_the_end(log, rekeyed(strict))
    assert sorted(record.value for record in log.read("out")) == [1, 2]
    assert replay(log, "--source", "rekeyed-values-repartition") == 0
    assert len(log.read("in", value=str)) == 4
    run_to_the_end(log, rekeyed(patient))
    assert sorted(record.value for record in log.read("out")) == [1, 2, 0xEE, 0xFF]
