"""What cannot be gone on from is refused before anything is written: another log than the one that was backfilled, one
that is partitioned in another way, one that does not let us write."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams import App
from pystreams.backfill.archive.archive import archive
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.handover.checks import check_target
from pystreams.backfill.handover.hand_over import HandOverInterrupted, hand_over
from pystreams.backfill.handover.publishing import PublishStore
from pystreams.backfill.sources import CsvSource, EmbeddedSource, ParquetSource, Source
from pystreams.broker.embedded.transactions import EmbeddedGroupCommitter
from pystreams.errors import (
    BrokerError,
    OffsetOutOfRangeError,
    StateError,
    StreamsError,
    TopicError,
)
from pystreams.ids import TopicPartition
from tests.backfill.kit import Backfill, memory
from tests.backfill.live import (
    SETTINGS,
    append,
    create,
    left_on,
    published_manifest,
    raw,
    split,
    with_sinks_before,
)
from tests.backfill.programs import history, word_count
from tests.live.support import Log, caught_up, run_to_the_end

pytestmark = pytest.mark.live

NewLog = Callable[[str], Log]
LINES = TopicPartition("lines", 0)
CUT = {LINES: 100}


def program(log: Log) -> App:
    return word_count(**SETTINGS, state_dir=log.path / "state")


def filled(log: Log, seed: int = 1) -> EmbeddedSource:
    create(log, history("word count", seed, 1), ["word-counts"])
    append(log, history("word count", seed, 1))
    return EmbeddedSource(str(log.path / "log.db"))


def computed(log: Log, source: Source, folder: str = "staging", **cut: Any) -> BackfillResult:
    return Backfill(
        program(log), source, log.path / folder, **{"until": CUT, "commit_records": 16, **cut}
    ).run()


def is_refused(log: Log, result: BackfillResult, error: type[StreamsError], match: str) -> None:
    """And nothing was told or written: the application may start."""
    with pytest.raises(error, match=match):
        check_target(result, log.broker)
    with pytest.raises(error, match=match):
        hand_over(result, log.broker)
    assert published_manifest(log.broker, "wc") is None
    assert "wc-counts-changelog" not in log.admin.partition_counts()


# Another shape


def test_a_wider_topic_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    log.create("lines", "word-counts", partitions=2)
    append(log, history("word count", 1, 1))
    result = computed(log, memory(history("word count", 1, 1)))
    is_refused(log, result, TopicError, "topic lines has 2 partitions there, it was backfilled with 1")


def test_a_topic_that_the_pattern_finds_by_now_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    log.create("lines-old")
    log.write("lines-old", [("k", i, i + 1) for i in range(9)])
    app = App("wc", **SETTINGS, state_dir=log.path / "state")
    app.stream(re.compile("lines-.*"), key=str, value=int).group_by_key().count(name="counts")
    result = Backfill(app, EmbeddedSource(str(log.path / "log.db")), log.path / "staging").run()
    log.create("lines-new", partitions=3)
    is_refused(log, result, TopicError, "topic lines-new, which the live application would read, was not")


# Another log


def test_a_log_with_other_records_at_the_same_offsets_is_refused(new_log: NewLog) -> None:
    one, other = new_log("one"), new_log("other")
    source = filled(one)
    filled(other, seed=2)
    result = computed(other, source)
    is_refused(other, result, TopicError, "topic lines is not the one that was backfilled")


def test_other_content_at_the_same_times_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    filled(log)
    past = history("word count", 1, 1)
    other = {"lines": [[line._replace(value=(line.value or b"") + b"!") for line in past["lines"][0]]]}
    result = computed(log, memory(other, {"word-counts": 1}))
    is_refused(log, result, TopicError, "its key or its value was different")


def test_an_archive_of_the_log_is_known_again(new_log: NewLog, caplog: pytest.LogCaptureFixture) -> None:
    one, other = new_log("one"), new_log("other")
    for log, seed in ((one, 1), (other, 2)):
        archive(filled(log, seed), ["lines"], str(log.path / "archive"))
    result = computed(one, ParquetSource(str(other.path / "archive")), "other")
    is_refused(one, result, TopicError, "topic lines is not the one that was backfilled")
    result = computed(one, ParquetSource(str(one.path / "archive")))
    assert not hand_over(result, one.broker).complete_before
    assert "cannot be told" not in caplog.text


def test_what_a_source_of_text_cannot_give_is_reported(
    new_log: NewLog, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be read whole once more."""
    log = new_log("log")
    filled(log)
    (log.path / "lines.csv").write_text(
        "topic,partition,offset,timestamp,key,value\n"
        + "".join(
            f"lines,0,{offset},{line.timestamp},,{(line.value or b'').decode()}\n"
            for offset, line in enumerate(history("word count", 1, 1)["lines"][0])
        )
    )
    assert not hand_over(computed(log, CsvSource(str(log.path / "lines.csv"))), log.broker).complete_before
    assert "for lines-0: the source cannot give" in caplog.text


def test_where_the_record_is_gone_it_is_said_and_handed_over(
    new_log: NewLog, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_log("log")
    result = computed(log, filled(log))
    log.admin.delete_records(CUT).wait()
    caplog.set_level("INFO", "pystreams")
    assert not hand_over(result, log.broker).complete_before
    assert "for lines-0: the log no longer has the last record before the cut" in caplog.text


# What the log does not let us do


def test_what_the_log_does_not_take_is_refused_before_anything_is_written(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log("log")
    result = computed(log, filled(log))
    with closing(log.broker.transactional_producer("other", "wc-backfill-counts-0")):
        is_refused_at_last(log, result, "another process is writing as wc-backfill-counts-0")

    def forbidden(_: Any, partitions: Any) -> None:
        raise BrokerError(f"{len(partitions)} forbidden")

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedGroupCommitter, "probe", forbidden)
        is_refused_at_last(log, result, "2 forbidden")
    run_to_the_end(log, program(log))


def is_refused_at_last(log: Log, result: BackfillResult, match: str) -> None:
    with pytest.raises(BrokerError, match=match):
        hand_over(result, log.broker)
    assert published_manifest(log.broker, "wc") is None


# A second time


def test_offsets_that_are_lost_are_noticed_and_written_again(new_log: NewLog) -> None:
    """Kafka forgets those of a group without members after seven days."""
    log, live = new_log("log"), new_log("live")
    result = computed(log, filled(log))
    hand_over(result, log.broker)
    log.admin.delete_group("wc")
    with pytest.raises(OffsetOutOfRangeError, match="offsets that a backfill has handed over are gone"):
        run_to_the_end(log, program(log))
    again = hand_over(result, log.broker)
    assert (again.complete_before, again.stores["counts"].written) == (False, 0)
    run_to_the_end(log, program(log))
    create(live, history("word count", 1, 1), ["word-counts"])
    for part in split(history("word count", 1, 1), CUT):
        append(live, part)
        run_to_the_end(live, program(live))
    found = with_sinks_before(result, left_on(log, program(log), ["word-counts"]))
    assert found == left_on(live, program(live), ["word-counts"])


def test_lost_offsets_of_topics_that_are_read_no_more_do_not_matter(new_log: NewLog) -> None:
    log = new_log("log")
    hand_over(computed(log, filled(log)), log.broker)
    run_to_the_end(log, program(log))
    log.admin.delete_group("wc")
    log.create("others")
    app = App("wc", **SETTINGS, state_dir=log.path / "other-state")
    app.stream("others", key=str, value=int).to("word-counts")
    with pytest.raises(StreamsError, match="was handed over to a different version of the application"):
        run_to_the_end(log, app)


def test_a_second_command_is_refused_while_the_application_runs(new_log: NewLog) -> None:
    log = new_log("log")
    result = computed(log, filled(log))
    hand_over(result, log.broker)
    caught_up(log.start(program(log)))
    check_target(result, log.broker)
    assert hand_over(result, log.broker).complete_before
    with pytest.raises(
        BrokerError, match=r"wc is running(.|\n)*killed member stays in the group until .* 45 s"
    ):
        hand_over(computed(log, result_source(log), "another"), log.broker)


def result_source(log: Log) -> EmbeddedSource:
    return EmbeddedSource(str(log.path / "log.db"))


# Records for output topics


def test_they_are_emitted_behind_the_checks_and_before_it_is_complete(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log("log")
    result = computed(log, filled(log))
    sink = TopicPartition("word-counts", 0)
    caught_up(streams := log.start(program(log)))
    before = raw(log, sink)
    with pytest.raises(BrokerError, match="wc is running"):
        hand_over(result, log.broker, emit=True)
    assert streams.close(30_000)
    assert raw(log, sink) == before

    def stopped(*_: Any) -> None:
        raise BrokerError("stopped")

    with pytest.raises(BrokerError, match=r"^stopped(.|\n)*does not start from an incomplete hand-over"):
        hand_over(result, log.broker, emit=True, before_commit=stopped)
    count = sum(result.written().values())
    assert len(raw(log, sink)) == len(before) + count
    with pytest.raises(StateError, match="the hand-over of a backfill is incomplete"):
        run_to_the_end(log, program(log))
    for complete_before in (False, True):
        done = hand_over(result, log.broker, emit=True)
        assert (done.complete_before, done.emitted) == (complete_before, {"word-counts": count})
    assert len(raw(log, sink)) == len(before) + count


def test_they_are_refused_once_the_application_may_have_written_there(new_log: NewLog) -> None:
    log = new_log("log")
    result = computed(log, filled(log))
    assert hand_over(result, log.broker).emitted is None
    with pytest.raises(StateError, match="handed over before, without its records") as refused:
        hand_over(result, log.broker, emit=True)
    assert refused.value.hint == (
        "write them to files: emit(result, FOLDER), on the command line --emit parquet:FOLDER"
    )


# Ctrl-C


def test_who_stops_it_learns_what_the_application_can_do(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> bytes:
        raise KeyboardInterrupt

    log = new_log("log")
    result = computed(log, filled(log))
    with monkeypatch.context() as patch:
        patch.setattr(PublishStore, "__call__", stopped)
        with pytest.raises(
            HandOverInterrupted, match=r"wc .* does not start from an incomplete hand-over: .*--resume"
        ):
            hand_over(result, log.broker)
    with pytest.raises(StateError, match="the hand-over of a backfill is incomplete"):
        run_to_the_end(log, program(log))
    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedGroupCommitter, "probe", stopped)
        with pytest.raises(KeyboardInterrupt) as raised:
            hand_over(result, log.broker)
    assert not isinstance(raised.value, HandOverInterrupted)


def test_the_place_of_a_backfill_says_by_what_its_log_is_known_again(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    result = computed(log, filled(log))
    (found,) = result.manifest.inputs
    assert found.last is not None
    assert (found.last.offset, found.last.timestamp) == (
        99,
        history("word count", 1, 1)["lines"][0][99].timestamp,
    )
    again = type(result.manifest).from_json(result.manifest.to_json(), "here")
    assert again.inputs[0].last == found.last
