"""Backfill, hand over, go on live: the same as live all along (E2: with a stop at the cut; E3: without one).

Sinks are what the backfill emitted and then what live emitted; changelogs are compared compacted; offsets with their
times and operators' entries. Caches are off.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from pystreams.backfill.handover import last_values
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.plan.manifest import Status
from pystreams.backfill.sources import EmbeddedSource
from pystreams.clock import SystemClock
from pystreams.engine.offset_metadata import merge_committed
from pystreams.errors import BrokerError, OffsetOutOfRangeError, RetentionError
from pystreams.ids import TopicPartition
from pystreams.runtime.tasks.overflow_reading import read_overflow
from tests.backfill.kit import Backfill, everything, memory
from tests.backfill.live import (
    SETTINGS,
    append,
    create,
    left_on,
    published_manifest,
    random_cut,
    raw,
    split,
    with_sinks_before,
)
from tests.backfill.programs import PROGRAMS, history, windowed_sum, word_count
from tests.examples import chosen
from tests.live.support import Log, caught_up, run_to_the_end

pytestmark = pytest.mark.live

NewLog = Callable[[str], Log]

#: Records of two inputs must be there before a task looks at either: then live takes them by time.
OUTPUTS = {
    "word count": ["word-counts"],
    "windowed sum": ["sums"],
    "two repartitions": ["regions"],
    "punctuated": ["totals"],
    "joined streams": ["sums"],
    "joined versions": ["sums"],
    "joined globally": ["sums"],
}


def program(name: str, log: Log) -> Any:
    app = PROGRAMS[name](**SETTINGS, state_dir=log.path / "state")
    # The histories are of 1970: what time would delete must stay.
    app.config = app.config.override({"window_changelog_retention_ms": -1})
    return app


def backfilled(name: str, log: Log, until: Any) -> Any:
    source = EmbeddedSource(str(log.path / "log.db"))
    return Backfill(program(name, log), source, log.path / "staging", until=until, commit_records=16).run()


# The repartitioned ones with one partition: several tasks would write what one reads, in any order.
CASES = chosen(
    [
        (name, partitions, seed)
        for seed in range(2)
        for name, partitions in (
            ("word count", 1),
            ("windowed sum", 3),
            ("two repartitions", 1),
            ("punctuated", 3),
            ("joined streams", 2),
            ("joined versions", 3),
            ("joined globally", 3),
        )
    ],
    lambda case: case[2] == 0 or case[0] == "joined streams",
)


@pytest.mark.parametrize(("name", "partitions", "seed"), CASES)
def test_e2_any_cut_equals_live_with_a_stop_there(
    name: str, partitions: int, seed: int, new_log: NewLog
) -> None:
    past = history(name, seed, partitions)
    at = random_cut(past, random.Random(seed))
    prefix, rest = split(past, at)
    live, handed = new_log("live"), new_log("handed")
    for log in (live, handed):
        create(log, past, OUTPUTS[name])
        append(log, prefix)
    run_to_the_end(live, program(name, live))
    append(live, rest)
    run_to_the_end(live, program(name, live))

    result = backfilled(name, handed, at)
    hand_over(result, handed.broker)
    append(handed, rest)
    run_to_the_end(handed, program(name, handed))
    found = with_sinks_before(result, left_on(handed, program(name, handed), OUTPUTS[name]))
    assert found == left_on(live, program(name, live), OUTPUTS[name])


@pytest.mark.parametrize("time_ms", [0, 130, 300, 10_000])
def test_e3_a_cut_in_time_equals_live_without_a_stop(time_ms: int, new_log: NewLog) -> None:
    past = {topic: [sorted(p, key=lambda line: line.timestamp) for p in partitions]
            for topic, partitions in history("windowed sum", 3, 2).items()}  # fmt: skip
    live, handed = new_log("live"), new_log("handed")
    for log in (live, handed):
        create(log, past, ["sums"])
        append(log, past)
    run_to_the_end(live, program("windowed sum", live))

    result = backfilled("windowed sum", handed, time_ms)
    hand_over(result, handed.broker)
    run_to_the_end(handed, program("windowed sum", handed))
    found = with_sinks_before(result, left_on(handed, program("windowed sum", handed), ["sums"]))
    assert found == left_on(live, program("windowed sum", live), ["sums"])


@pytest.mark.parametrize("name", ["word count", "two repartitions"])
def test_e4_confluent_applications_end_in_the_same_tables(name: str, new_log: NewLog) -> None:
    """Several tasks write what one reads: the values are the same, whatever the order; updates need not be."""
    past = history(name, 4, 3)
    at = random_cut(past, random.Random(4))
    live, handed = new_log("live"), new_log("handed")
    for log in (live, handed):
        create(log, past, OUTPUTS[name])
        append(log, past)
    run_to_the_end(live, program(name, live))
    hand_over(backfilled(name, handed, at), handed.broker)
    run_to_the_end(handed, program(name, handed))

    def tables(log: Log) -> Any:
        changelogs = left_on(log, program(name, log), []).changelogs
        return {partition: [(e.key, e.value) for e in entries] for partition, entries in changelogs.items()}

    assert tables(handed) == tables(live)


# What the changelogs hold is in memory, on the disk, or moves there in between.
@pytest.mark.parametrize("memory_bytes", [1 << 26, 1_000, 0])
def test_handing_over_again_writes_nothing_and_clears_what_is_left(
    memory_bytes: int, new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_values, "MEMORY_BYTES", memory_bytes)
    log = new_log("log")
    create(log, history("word count", 1, 2), ["word-counts"])
    append(log, history("word count", 1, 2))
    result = backfilled("word count", log, None)
    hand_over(result, log.broker)
    changelog = TopicPartition("wc-counts-changelog", 0)
    once = raw(log, changelog)
    again = hand_over(result, log.broker)
    assert raw(log, changelog) == once
    assert again.complete_before
    assert again.manifest.status is Status.COMMITTED
    assert published_manifest(log.broker, "wc") == again.manifest

    nothing = Backfill(program("word count", log), EmbeddedSource(str(log.path / "log.db")), log.path / "none",
                       until={TopicPartition("lines", p): 0 for p in range(2)})  # fmt: skip
    deleted = hand_over(nothing.run(), log.broker).stores["counts"]
    assert (deleted.written, deleted.deleted) == (0, 12)
    assert left_on(log, program("word count", log), []).changelogs[changelog] == []
    assert {p: o.offset for p, o in log.committed("wc").items() if p.topic == "lines"} == {
        TopicPartition("lines", 0): 0,
        TopicPartition("lines", 1): 0,
    }


def test_a_running_application_is_left_alone(new_log: NewLog) -> None:
    log = new_log("log")
    create(log, history("word count", 1, 1), ["word-counts"])
    append(log, history("word count", 1, 1))
    streams = log.start(program("word count", log))
    caught_up(streams)
    before = log.committed("wc")
    with pytest.raises(BrokerError, match="wc is running"):
        hand_over(backfilled("word count", log, None), log.broker)
    assert log.committed("wc") == before
    assert published_manifest(log.broker, "wc") is None


def test_a_changelog_that_would_delete_the_result_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    past = history("windowed sum", 1, 1)
    create(log, past, ["sums"])
    append(log, past)
    app = windowed_sum(**SETTINGS, state_dir=log.path / "state")
    result = Backfill(app, EmbeddedSource(str(log.path / "log.db")), log.path / "staging").run()
    with pytest.raises(RetentionError, match="sums-by-window-changelog") as refused:
        hand_over(result, log.broker)
    assert refused.value.hint == (
        "set -s window_changelog_retention_ms=-1 (or App(...)) for changelogs that do not exist yet; or allow it"
        " (-s allow_expired=true, or App(..., allow_expired=True))"
    )
    with closing(log.broker.admin()) as admin:
        admin.alter_topic_config("sums", {"retention.ms": "604800000"})
    with pytest.raises(RetentionError) as refused:
        hand_over(result, log.broker, emit=True)
    assert "sums-by-window-changelog: retention.ms=" in refused.value.where
    assert "sums: retention.ms=604800000, oldest record 19" in refused.value.where
    assert "pystreams topics alter sums --config retention.ms=-1, and set -s window_" in refused.value.hint


def test_a_cut_that_the_log_does_not_hold_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    past = history("word count", 1, 1)
    create(log, past, ["word-counts"])
    result = Backfill(word_count(), memory(past), log.path / "staging").run()
    with pytest.raises(OffsetOutOfRangeError, match=r"cut of lines-0 is at offset 120"):
        hand_over(result, log.broker)


def test_a_log_and_the_same_records_in_memory_give_the_same(new_log: NewLog) -> None:
    log = new_log("log")
    past = history("windowed sum", 8, 2)
    create(log, past, ["sums"])
    append(log, past)
    from_log = backfilled("windowed sum", log, None)
    from_memory = Backfill(
        program("windowed sum", log), memory(past), log.path / "memory", commit_records=16
    ).run()
    assert everything(from_log) == everything(from_memory)


def test_what_does_not_fit_beside_the_offsets_is_handed_over_as_well(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pystreams.engine.offset_metadata.TEXT_CHARACTERS_MAX", 10)
    past = history("windowed sum", 3, 2)
    log = new_log("handed")
    create(log, past, ["sums"])
    append(log, past)
    result = backfilled("windowed sum", log, None)
    application = result.plan.application_id
    hand_over(result, log.broker)
    for partition, at in log.committed(application).items():
        metadata = merge_committed({partition: at})
        assert metadata.overflow
        overflow = read_overflow(log.broker, log.admin, application, metadata.overflow, SystemClock())
        computed = merge_committed({partition: result.offsets()[partition]})
        assert metadata.with_overflow(overflow) == computed
        assert computed.own
    run_to_the_end(log, program("windowed sum", log))
