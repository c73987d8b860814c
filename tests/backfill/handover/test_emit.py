"""Records that a backfill wrote for sinks get to files or topics once, however often it is tried."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.api import backfill, plan_backfill
from pystreams.backfill.compute.backfill_result import BackfillResult, SinkRecord
from pystreams.backfill.exchange.rows import headers_of
from pystreams.backfill.handover import emit_to_files
from pystreams.backfill.handover import emit_to_topics as emitted_topics
from pystreams.backfill.handover.emit import check_emit, emit
from pystreams.backfill.handover.emit_to_files import EmitToFolder
from pystreams.backfill.handover.emit_to_topics import EmitToTopic
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.sources import EmbeddedSource, ParquetSource, logs
from pystreams.backfill.sources.folder import Folder
from pystreams.backfill.sources.ranges import InputRange
from pystreams.broker.embedded.consumer import EmbeddedConsumer
from pystreams.errors import BrokerError, BrokerUnavailableError, RetentionError, TopicError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS
from tests.backfill.kit import memory
from tests.backfill.live import SETTINGS, raw, sink_record
from tests.backfill.programs import history, word_count
from tests.backfill.twins import Twins
from tests.live.support import Log, caught_up

NewLog = Callable[[str], Log]


def computed(staging: Path, seed: int = 3, **given: Any) -> BackfillResult:
    source = memory(history("word count", seed, 2), {"word-counts": 3})
    app = word_count(statestore_cache_max_bytes=0)
    return backfill(app, sources=source, staging=staging, **given)


def archived(path: Path, topic: str) -> dict[int, list[SinkRecord]]:
    """What an archive holds of a topic, read as a backfill reads it."""
    source = ParquetSource(str(path))
    partitions = [TopicPartition(topic, p) for p in range(source.partitions()[topic])]
    found: dict[int, list[SinkRecord]] = {}
    for partition, end in source.ends(partitions).items():
        assert source.beginnings([partition])[partition] == 0
        records = found[partition.partition] = []
        for rows in source.read(InputRange(partition, 0, end)):
            columns = [rows.column(name).to_pylist() for name in ("key", "value", "timestamp")]
            headers = headers_of(rows.column("headers")) or [NO_HEADERS] * rows.num_rows
            records += map(SinkRecord, *columns, headers)
        assert len(records) == end
    return found


def test_an_archive_holds_them_in_order(tmp_path: Path) -> None:
    result = computed(tmp_path / "staging")
    assert emit(result, tmp_path / "archive") == {"word-counts": 360}
    assert archived(tmp_path / "archive", "word-counts") == result.sink("word-counts")
    assert emit(result, f"file://{tmp_path}/archive") == {"word-counts": 360}
    assert archived(tmp_path / "archive", "word-counts") == result.sink("word-counts")


def test_a_later_backfills_records_come_behind(tmp_path: Path) -> None:
    first = computed(tmp_path / "first", until={TopicPartition("lines", p): 20 for p in range(2)})
    second = computed(tmp_path / "second", previous=tmp_path / "first")
    emit(first, tmp_path / "archive")
    emit(second, tmp_path / "archive")
    emit(first, tmp_path / "archive")
    found = archived(tmp_path / "archive", "word-counts")
    assert found == {p: first.sink("word-counts")[p] + second.sink("word-counts")[p] for p in range(3)}


def test_a_killed_attempt_leaves_nothing_in_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = computed(tmp_path / "staging")
    with monkeypatch.context() as patch:
        patch.setattr(emit_to_files, "_write", _killed)
        with pytest.raises(KeyboardInterrupt):
            emit(result, tmp_path / "archive")
    assert [path for path in (tmp_path / "archive").rglob("*") if path.is_file()] == []
    emit(result, tmp_path / "archive")
    assert archived(tmp_path / "archive", "word-counts") == result.sink("word-counts")


def _killed(*arguments: Any) -> int:
    raise KeyboardInterrupt


@pytest.mark.live
@pytest.mark.parametrize("kill", [1, 2, 5, 8])
def test_topics_get_each_record_once(
    kill: int, new_log: NewLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed right after the n-th transaction of several for each partition, and done again."""
    log = new_log("log")
    log.create("word-counts", partitions=3)
    result = computed(tmp_path / "staging")
    monkeypatch.setattr(emitted_topics, "TRANSACTION_RECORDS", 30)
    commit, commits = EmitToTopic._commit, 0

    def counted(*arguments: Any) -> None:
        nonlocal commits
        commit(*arguments)
        commits += 1
        if commits == kill:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EmitToTopic, "_commit", counted)
        with pytest.raises(KeyboardInterrupt):
            emit(result, log.broker)
    for _ in range(2):
        assert emit(result, log.broker) == {"word-counts": 360}
    found = {p.partition: [sink_record(line) for line in raw(log, p)] for p in log.partitions("word-counts")}
    assert found == result.sink("word-counts")


@pytest.mark.live
def test_an_earlier_backfill_that_is_emitted_again_adds_nothing(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    log.create("word-counts", partitions=3)
    first = computed(tmp_path / "first", until={TopicPartition("lines", p): 20 for p in range(2)})
    second = computed(tmp_path / "second", previous=tmp_path / "first")
    told = [emit(result, log.broker)["word-counts"] for result in (first, second, first, second, first)]
    assert told == [told[0], told[1], told[0], told[1], told[0]]
    found = {p.partition: [sink_record(line) for line in raw(log, p)] for p in log.partitions("word-counts")}
    assert found == {p: first.sink("word-counts")[p] + second.sink("word-counts")[p] for p in range(3)}


@pytest.mark.live
def test_a_topic_that_was_made_anew_and_wider_gets_the_next_backfills_records(
    new_log: NewLog, tmp_path: Path
) -> None:
    log = new_log("log")
    log.create("word-counts", partitions=3)
    emit(computed(tmp_path / "narrow"), log.broker)
    with closing(log.broker.admin()) as admin:
        admin.delete_topics(["word-counts"])
    log.create("word-counts", partitions=5)
    source = memory(history("word count", 3, 2), {"word-counts": 5})
    wide = backfill(word_count(statestore_cache_max_bytes=0), sources=source, staging=tmp_path / "wide")
    for _ in range(2):
        assert emit(wide, log.broker) == {"word-counts": 360}
    found = {p.partition: [sink_record(line) for line in raw(log, p)] for p in log.partitions("word-counts")}
    assert {p: records for p, records in found.items() if records} == wide.sink("word-counts")


@pytest.mark.live
def test_marks_that_never_come_to_their_end_do_not_hold_it_for_ever(
    new_log: NewLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a transaction does that somebody leaves open: readers of committed records do not get past it."""
    log = new_log("log")
    log.create("word-counts", partitions=3)
    result = computed(tmp_path / "staging")
    emit(result, log.broker)
    monkeypatch.setattr(EmbeddedConsumer, "poll", lambda *_: [])
    monkeypatch.setattr(logs, "_SILENCE_MS_MAX", 50)
    with pytest.raises(
        BrokerUnavailableError, match="nothing more comes of wc-backfill-emitted-word-counts-0"
    ):
        emit(result, log.broker)


@pytest.mark.live
def test_emitted_handed_over_and_gone_on_with_equals_live(new_log: NewLog, tmp_path: Path) -> None:
    twins = Twins(new_log, seed=2)
    handed = twins.handed
    source = EmbeddedSource(str(handed.path / "log.db"))
    result = backfill(twins.app, sources=source, staging=tmp_path / "staging")
    emit(result, handed.broker)
    hand_over(result, handed.broker)
    twins.go_on_alike()


@pytest.mark.live
def test_topics_that_do_not_fit_are_refused(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    result = computed(tmp_path / "staging")
    with pytest.raises(TopicError, match="there is no topic word-counts"):
        emit(result, log.broker)
    log.create("word-counts", partitions=2)
    with pytest.raises(TopicError, match="word-counts has 2 partitions, the backfill writes 3"):
        emit(result, log.broker)


@pytest.mark.live
def test_a_topic_that_would_delete_them_is_refused(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    log.create("word-counts", partitions=3, config={"retention.ms": "604800000"})
    with pytest.raises(RetentionError, match=r"would delete what the backfill writes(.|\n)*word-counts: "):
        emit(computed(tmp_path / "staging"), log.broker)
    assert all(raw(log, partition) == [] for partition in log.partitions("word-counts"))


@pytest.mark.live
def test_who_allows_expired_records_is_only_warned(
    new_log: NewLog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_log("log")
    log.create("word-counts", partitions=3, config={"retention.ms": "604800000"})
    result = computed(tmp_path / "staging", settings={"allow_expired": True})
    assert emit(result, log.broker) == {"word-counts": 360}
    assert "topics would delete what the backfill writes right after it is written" in caplog.text
    assert "word-counts: retention.ms=604800000, oldest record 19" in caplog.text


@pytest.mark.live
def test_topics_that_cannot_take_them_are_known_before_anything_is_computed(
    new_log: NewLog, tmp_path: Path
) -> None:
    log = new_log("log")
    source = memory(history("word count", 3, 2), {"word-counts": 3})
    planned = plan_backfill(word_count(), sources=source)
    with closing(log.broker.admin()) as admin:
        with pytest.raises(TopicError, match="there is no topic word-counts") as refused:
            check_emit(planned, log.broker, admin)
        assert refused.value.hint == "pystreams topics create word-counts --partitions 3"
        log.create("word-counts", partitions=2)
        with pytest.raises(TopicError, match="word-counts has 2 partitions, the backfill writes 3"):
            check_emit(planned, log.broker, admin)


def test_passwords_in_the_url_of_a_folder_are_not_shown() -> None:
    to = EmitToFolder(Folder("s3a://key:secret@bucket/results"), "id").to("word-counts")
    assert "secret" not in repr(to)


@pytest.mark.live
def test_a_running_application_is_left_alone(new_log: NewLog, tmp_path: Path) -> None:
    log = new_log("log")
    log.create("lines", "word-counts", partitions=3)
    caught_up(log.start(word_count(**SETTINGS, state_dir=log.path / "state")))
    with pytest.raises(BrokerError, match="wc is running"):
        emit(computed(tmp_path / "staging"), log.broker)
