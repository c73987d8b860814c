"""A hand-over may set an application back in time: what it left of a later time, on the log and on its disk, is in the
way of nothing."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from pystreams import App, TimeWindows
from pystreams.backfill.handover.hand_over import HandedOver, hand_over
from pystreams.backfill.sources import EmbeddedSource
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from tests.backfill.kit import Backfill, History, lines, memory
from tests.backfill.live import SETTINGS, append, create, left_on, split
from tests.backfill.programs import history, windowed_sum
from tests.live.support import Log, caught_up, eventually, run_to_the_end

pytestmark = pytest.mark.live

NewLog = Callable[[str], Log]
MINUTE_MS = 60_000
AMOUNTS = TopicPartition("amounts", 0)


def hours(log: Log) -> App:
    """Sums of ten minutes, kept for an hour."""
    app = App("hours", **SETTINGS, window_changelog_retention_ms=-1, state_dir=log.path / "state")
    (
        app.stream("amounts", key=str, value=int)
        .group_by_key(value=int)
        .windowed_by(TimeWindows.tumbling(10 * MINUTE_MS, grace=50 * MINUTE_MS))
        .reduce(lambda total, amount: total + amount, name="by-window")
        .to_stream()
        .map(lambda window, total: (window.key, total))
        .to("sums", key=str, value=int)
    )
    return app


def six_hours() -> History:
    """A record each five minutes, some of them late by half an hour."""
    times = [minute - 30 * (minute % 20 == 0 and minute > 30) for minute in range(0, 360, 5)]
    return {"amounts": [lines([(f"k{t % 3}", t, t * MINUTE_MS) for t in times])]}


def set_back(log: Log, app: App, cut: dict[TopicPartition, int]) -> HandedOver:
    """A backfill over the log, up to the cut, handed over."""
    source = EmbeddedSource(str(log.path / "log.db"))
    return hand_over(
        Backfill(app, source, log.path / "staging", until=cut, commit_records=16).run(), log.broker
    )


def test_windows_of_the_time_that_it_is_set_back_to_are_alive(new_log: NewLog) -> None:
    """The changelog has windows of hours later, which a restore must not take for the time."""
    cut = {AMOUNTS: 24}
    live, handed = new_log("live"), new_log("handed")
    for log in (live, handed):
        create(log, six_hours(), ["sums"])
    for part in split(six_hours(), cut):
        append(live, part)
        run_to_the_end(live, hours(live))
    append(handed, six_hours())
    run_to_the_end(handed, hours(handed))
    set_back(handed, hours(handed), cut)
    emitted = handed.admin.end_offsets([TopicPartition("sums", 0)])
    run_to_the_end(handed, hours(handed))

    expected, found = left_on(live, hours(live), ["sums"]), left_on(handed, hours(handed), ["sums"])
    assert found.changelogs == expected.changelogs
    assert found.offsets == expected.offsets
    behind = {p: records[emitted[p] :] for p, records in found.sinks.items()}
    assert behind == {p: records[24:] for p, records in expected.sinks.items()}


def test_it_says_how_much_is_processed_again(new_log: NewLog, caplog: pytest.LogCaptureFixture) -> None:
    log = new_log("log")
    create(log, six_hours(), ["sums"])
    append(log, six_hours())
    records = log.admin.end_offsets([AMOUNTS])[AMOUNTS]
    expected = (
        f"hours has processed {records - 24} records beyond this backfill's cut; they are processed, and their results "
        "are emitted, again"
    )
    # The first hand-over of an application that has not run, and one at its end, take nothing back.
    assert not set_back(log, hours(log), {AMOUNTS: records}).again
    run_to_the_end(log, hours(log))
    assert expected not in caplog.messages
    shutil.rmtree(log.path / "staging")
    done = set_back(log, hours(log), {AMOUNTS: 24})
    assert expected in caplog.messages
    assert repr(done).splitlines()[-1] == f"{expected}."


def forgetful(log: Log) -> App:
    """Word count with a second store, on this machine's disk alone."""
    app = App("wc", **SETTINGS, state_dir=log.path / "state")
    words = app.stream("lines", value=str).flat_map_values(str.split).group_by(lambda word: word)
    words.count(name="counts").to_stream().to("word-counts")
    words.count(name="here", logged=False)
    return app


def counts(log: Log, store: str) -> dict[Any, Any]:
    streams = log.start(forgetful(log))
    caught_up(streams)
    found = dict(streams.store(store).all())
    assert streams.close(30_000)
    return found


def test_a_store_without_a_changelog_starts_empty(new_log: NewLog) -> None:
    """Nobody can hand it over; what it held belongs to the time before."""
    log = new_log("log")
    create(log, history("word count", 1, 1), ["word-counts"])
    append(log, history("word count", 1, 1))
    before = counts(log, "here")
    assert before == counts(log, "counts")
    set_back(log, forgetful(log), {TopicPartition("lines", 0): 100})
    after = counts(log, "here")
    assert counts(log, "counts") == before
    assert 0 < sum(count.value for count in after.values()) < sum(count.value for count in before.values())
    # Once: it is gone on with from then on.
    assert counts(log, "here") == after


def replaced(caplog: pytest.LogCaptureFixture) -> logging.LogRecord:
    """What was logged of local state from before the hand-over."""
    (record,) = (one for one in caplog.records if "from before a backfill's hand-over" in one.getMessage())
    return record


def test_a_store_whose_content_is_lost_is_named(new_log: NewLog, caplog: pytest.LogCaptureFixture) -> None:
    log = new_log("log")
    create(log, history("word count", 1, 1), ["word-counts"])
    append(log, history("word count", 1, 1))
    counts(log, "here")
    set_back(log, forgetful(log), {TopicPartition("lines", 0): 100})
    counts(log, "here")
    told = replaced(caplog)
    assert told.levelno == logging.WARNING
    assert told.getMessage().endswith("these have none, so their content is lost: here")


def test_where_nothing_is_lost_there_is_no_warning(new_log: NewLog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = new_log("log")
    create(log, six_hours(), ["sums"])
    append(log, six_hours())
    run_to_the_end(log, hours(log))
    set_back(log, hours(log), {AMOUNTS: 24})
    run_to_the_end(log, hours(log))
    told = replaced(caplog)
    assert told.levelno == logging.INFO
    assert told.getMessage().endswith("will be deleted and restored from their topics")


def test_of_another_log_nobody_but_the_user_deletes_it(new_log: NewLog, tmp_path: Any) -> None:
    one, other = new_log("one"), new_log("other")
    for log in (one, other):
        create(log, history("word count", 1, 1), ["word-counts"])
        append(log, history("word count", 1, 1))
    counts(one, "here")
    set_back(other, forgetful(other), {TopicPartition("lines", 0): 100})
    (one.path / "state").rename(other.path / "state")
    streams = other.start(forgetful(other))
    eventually(lambda: streams.finished, "the client ends")
    assert "belongs to another log" in str(streams.failure)


def reusing(log: Log) -> App:
    """Its table has the topic that it is made of in place of a changelog."""
    reuse = {"topology_optimization": "reuse.ktable.source.topics", "window_changelog_retention_ms": -1}
    return windowed_sum(**SETTINGS, **reuse, state_dir=log.path / "state")


def test_a_table_that_is_restored_from_its_topic_is_as_of_the_cut(new_log: NewLog) -> None:
    past = history("windowed sum", 5, 1)
    cut = {AMOUNTS: 60, TopicPartition("names", 0): 10}
    live, handed = new_log("live"), new_log("handed")
    for log in (live, handed):
        create(log, past, ["sums"])
    for part in split(past, cut):
        append(live, part)
        run_to_the_end(live, reusing(live))
    append(handed, past)
    run_to_the_end(handed, reusing(handed))
    before = handed.admin.end_offsets([TopicPartition("sums", 0)])
    set_back(handed, reusing(handed), cut)
    run_to_the_end(handed, reusing(handed))
    expected, found = left_on(live, reusing(live), ["sums"]), left_on(handed, reusing(handed), ["sums"])
    assert [topic for topic, _ in found.changelogs] == ["sums-by-window-changelog"]
    assert (found.changelogs, found.offsets) == (expected.changelogs, expected.offsets)
    behind = {p: records[before[p] :] for p, records in found.sinks.items()}
    assert all(records == expected.sinks[p][-len(records) :] for p, records in behind.items())
    assert all(behind.values())


def test_where_its_topic_no_longer_has_what_was_backfilled_that_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    create(log, history("windowed sum", 5, 1), ["sums"])
    append(log, history("windowed sum", 5, 1))
    log.admin.delete_records({TopicPartition("names", 0): 1}).wait()
    result = Backfill(reusing(log), memory(history("windowed sum", 5, 1)), log.path / "staging").run()
    with pytest.raises(OffsetOutOfRangeError, match="would be restored without what was backfilled"):
        hand_over(result, log.broker)
