"""Live stores and history are of one moment, or nothing is compared: a running application is exact or refused."""

from __future__ import annotations

import itertools
import threading
from contextlib import closing
from typing import Any

import pytest

from pystreams.backfill import JsonSource, ParquetSource
from pystreams.backfill.application import loaded
from pystreams.backfill.archive.archive import archive
from pystreams.backfill.compute.driver import run
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.sources import EmbeddedSource
from pystreams.backfill.verification.live_cut import read_live_cut
from pystreams.backfill.verification.outcome import StoreCounts
from pystreams.backfill.verification.verifying import compare, plan_verification
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.embedded.admin import EmbeddedAdmin
from pystreams.broker.port import CommittedOffset
from pystreams.clock import SystemClock
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.errors import (
    BrokerError,
    ConfigError,
    OffsetOutOfRangeError,
    StateError,
    StreamsError,
    TopicError,
    TopologyError,
)
from pystreams.ids import TopicPartition
from pystreams.take_over.hand_over_record import MANIFEST_KEY, HandOverRecord, manifest_topic
from tests.backfill.kit import lines
from tests.backfill.live import append, append_lines, create
from tests.backfill.programs import history
from tests.backfill.verification.verification_kit import OUTPUTS, NewLog, program, ran, verified
from tests.live.support import Line, Log, caught_up, eventually, run_to_the_end

pytestmark = pytest.mark.live


def message(error: type[StreamsError], log: Log, app: Any, **given: Any) -> str:
    """The whole message of a refusal."""
    with pytest.raises(error) as refused:
        verified(log, app, **given)
    return str(refused.value).replace(str(log.path), "FOLDER")


# A running application


def test_a_running_application_is_exact(new_log: NewLog) -> None:
    """It processes what another thread writes all the time. Its commits stop for moments only."""
    log = new_log("log")
    past = history("windowed sum", 5, 2)
    create(log, past, OUTPUTS)
    append(log, past)
    app = program("windowed sum", log)
    streams = log.start(app)
    caught_up(streams)
    stop = threading.Event()
    offsets = set()
    writer = threading.Thread(target=_write_until, args=(log, stop))
    writer.start()
    try:
        for _ in range(5):
            found = verified(log, program("windowed sum", log), wait_ms=30_000)
            assert found.equal, found
            offsets.add(sum(found.offsets.values()))
    finally:
        stop.set()
        writer.join()
    # It went on in between.
    assert len(offsets) > 1


def test_a_running_application_with_repartitions_is_exact_or_refused(new_log: NewLog) -> None:
    log = new_log("log")
    past = history("two repartitions", 5, 2)
    create(log, past, OUTPUTS)
    append(log, past)
    streams = log.start(program("two repartitions", log))
    caught_up(streams)
    stop, refused = threading.Event(), set[str]()
    writer = threading.Thread(target=_write_until, args=(log, stop))
    writer.start()
    try:
        for _ in range(10):
            try:
                found = verified(log, program("two repartitions", log), wait_ms=0)
            except BrokerError as error:
                refused.add(error.what)
            else:
                assert found.equal, found
    finally:
        stop.set()
        writer.join()
    assert refused <= {"not everything that regions has read has reached its stores"}
    caught_up(streams)
    assert verified(log, program("two repartitions", log), wait_ms=30_000).equal


def _write_until(log: Log, stop: threading.Event) -> None:
    """Amounts, a few at a time."""
    with (
        closing(EmbeddedBroker(log.path / "log.db")) as broker,
        closing(broker.producer("w", "w")) as producer,
    ):
        number = 0
        while not stop.wait(0.02):
            for _ in range(5):
                number += 1
                key = b"k%d" % (number % 9)
                producer.send("amounts", None, key, (number % 40).to_bytes(8, "big"), 400 + number, ())
            producer.commit({}, None)


def _commits_in_between(log: Log, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that the ends of changelogs are read, one of two tasks commits, the tasks in turn."""
    group, read_ends = "sums" if topic == "amounts" else "wc", EmbeddedAdmin.stable_end_offsets
    turn = itertools.cycle(range(2))

    def commit_and_read(self: EmbeddedAdmin, *arguments: Any) -> Any:
        partition = TopicPartition(topic, next(turn))
        now = log.committed(group)[partition]
        log.admin.set_group_offsets(group, {partition: CommittedOffset(now.offset - 1)})
        return read_ends(self, *arguments)

    monkeypatch.setattr(EmbeddedAdmin, "stable_end_offsets", commit_and_read)


def test_each_task_has_a_moment_of_its_own_without_repartition_topics(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log("log")
    app = ran(log, "windowed sum", 2)
    first, second = (log.committed("sums")[TopicPartition("amounts", number)].offset for number in range(2))
    _commits_in_between(log, "amounts", monkeypatch)
    cut = read_live_cut(log.broker, loaded(app, {}), SystemClock(), 60_000)
    # Task 0 commits in the first look, task 1 in the second one.
    assert cut.offsets[TopicPartition("amounts", 0)] == first - 1
    assert cut.offsets[TopicPartition("amounts", 1)] == second


def test_with_repartition_topics_all_tasks_have_one_moment(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log("log")
    app = ran(log, "word count", 2)
    _commits_in_between(log, "lines", monkeypatch)
    refused = message(BrokerError, log, app, wait_ms=200)
    assert "why: it commits while its offsets and changelogs are read" in refused


def test_keys_that_change_after_the_moment_are_left_out(new_log: NewLog) -> None:
    """The moment is found, then the application goes on, and then its changelog is read."""
    log = new_log("log")
    app = ran(log, "word count", 1)
    executor, source = InlineExecutor(), EmbeddedSource(str(log.path / "log.db"))
    found = plan_verification(app, log.broker, sources=source, executor=executor)
    append(log, {"lines": [lines([(None, "w1 w2 new", 900)], key=str, value=str)]})
    run_to_the_end(log, program("word count", log))
    # What was written before the moment may be gone by now.
    log.admin.clean()  # type: ignore[attr-defined]
    result = run(found.planned, executor, str(log.path / "staging"))
    verified_then = compare(result, log.broker, found.cut)
    assert verified_then.counts == StoreCounts(equal=10, since=2)
    assert verified_then.equal


@pytest.mark.parametrize("name", ["joined streams", "joined versions"])
def test_so_are_windows_and_versions_of_keys_that_change(name: str, new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, name, 1)
    executor, source = InlineExecutor(), EmbeddedSource(str(log.path / "log.db"))
    found = plan_verification(app, log.broker, sources=source, executor=executor)
    append(log, history(name, 6, 1))
    run_to_the_end(log, program(name, log))
    result = run(found.planned, executor, str(log.path / "staging"))
    verified_then = compare(result, log.broker, found.cut)
    assert verified_then.equal, verified_then
    assert verified_then.counts.since


def test_without_transactions_a_running_application_is_refused(
    new_log: NewLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = new_log("log")
    past = history("windowed sum", 5, 1)
    create(log, past, OUTPUTS)
    append(log, past)
    streams = log.start(program("windowed sum", log))
    caught_up(streams)
    monkeypatch.setattr(EmbeddedBroker, "transactional", False)
    (member,) = log.admin.group_members("sums")
    assert message(BrokerError, log, program("windowed sum", log)) == (
        "sums is running, so its offsets and its changelogs are not of one moment\n"
        "  where: embedded log at FOLDER/log.db\n"
        "  why: with processing_guarantee=at_least_once it writes changelogs before it commits offsets; its group has "
        f"1 member: {member}\n"
        "  next: stop all its instances, when they have caught up (pystreams run ... --until-caught-up), then verify"
    )
    assert streams.close(60_000)
    found = verified(log, program("windowed sum", log))
    assert found.equal
    assert not found.atomic


# What has not reached the stores


def test_records_between_its_steps_are_refused(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    append(log, {"wc-counts-repartition": [[Line(b"w1", b"w1", 1)]]})
    end = log.admin.end_offsets([TopicPartition("wc-counts-repartition", 0)]).popitem()[1]
    assert message(BrokerError, log, app) == (
        "not everything that wc has read has reached its stores\n"
        "  where: embedded log at FOLDER/log.db\n"
        f"  why: records in wc-counts-repartition-0, from offset {end - 1} on, are not processed yet\n"
        "  next: let it catch up, and stop it (pystreams run ... --until-caught-up), or wait longer for a calm moment "
        "(--wait SECONDS)"
    )
    run_to_the_end(log, app)
    assert not verified(log, app).equal  # nobody else has written that record


def test_a_calm_moment_is_waited_for(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "two repartitions", 1)
    append(log, history("two repartitions", 6, 1))
    streams = log.start(program("two repartitions", log))
    assert verified(log, app, wait_ms=240_000).equal
    assert eventually(streams.caught_up)


def test_a_stream_time_that_waits_for_others_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "windowed sum", 1)
    waits = {}
    for partition, committed in log.committed("sums").items():
        metadata = OffsetMetadata.decode(committed.metadata)
        entries = {**metadata.entries, "py//time": 3, f"py/at/{partition.topic}/0": committed.offset}
        text = OffsetMetadata(metadata.partition_time, entries).encode()
        waits[partition] = CommittedOffset(committed.offset, text)
    log.admin.set_group_offsets("sums", waits)
    assert "why: the stream time of task 0_0 still waits for tasks that lag" in message(BrokerError, log, app)


# What there is nothing to compare with


def test_an_application_that_has_not_run_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    create(log, history("word count", 5, 1), OUTPUTS)
    assert message(BrokerError, log, program("word count", log)) == (
        "there is nothing to compare: wc has not committed any offsets\n"
        "  where: embedded log at FOLDER/log.db\n"
        "  why: it has not run on this log, or it was reset; Kafka deletes the offsets of a group without members "
        "after offsets.retention.minutes (7 days)\n"
        "  next: check the log and the application's id, or run the application first"
    )


def test_another_version_than_the_one_that_ran_last_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    create(log, {"in": [[]]}, [])
    log.write("in", [("a", 1, 1)])
    app = log.app("changing")
    app.stream("in", key=str, value=int).group_by_key().count(name="counts")
    run_to_the_end(log, app)
    other = log.app("changing")
    other.stream("in", key=str, value=int).filter(bool).group_by_key().count(name="counts")
    told = message(TopologyError, log, other)
    assert told.startswith("this is not the version of changing that ran last\n")
    assert told.endswith(
        "embedded log at FOLDER/log.db\n"
        "  why: store counts keeps its content, which was computed in another way: from now on "
        "KSTREAM-FILTER-0000000001 is new before it\n"
        "  next: verify with the program that ran last; pystreams diff shows what has changed since"
    )


def test_a_changelog_that_is_not_there_is_named(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    log.admin.delete_topics(["wc-counts-changelog"])
    assert message(TopicError, log, app) == (
        "there is no changelog wc-counts-changelog to compare with\n"
        "  where: application wc, embedded log at FOLDER/log.db\n"
        "  why: the application has not run with this store on this log\n"
        "  next: verify the version of the application that runs on this log"
    )


def test_a_changelog_of_another_width_is_named(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    log.admin.delete_topics(["wc-counts-changelog"])
    log.create("wc-counts-changelog", partitions=3)
    told = message(TopicError, log, app)
    assert told.startswith("changelog wc-counts-changelog has 3 partitions, the application has 1 for it\n")
    assert "why: the inputs have another number of partitions than when the application began" in told


def test_half_of_a_hand_over_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    begun = HandOverRecord("b-1", "a-1", complete=False, fingerprint="", shape=[])
    log.create(manifest_topic("wc"))
    line = Line(MANIFEST_KEY, begun.to_bytes(), 1)
    append_lines(log, {TopicPartition(manifest_topic("wc"), 0): [line]})
    assert message(StateError, log, app) == (
        "the hand-over of a backfill is incomplete\n"
        "  where: application wc, embedded log at FOLDER/log.db\n"
        "  why: the hand-over of backfill b-1 has begun to write the changelogs, and has not finished\n"
        "  next: hand it over again (pystreams backfill ... --resume), then verify"
    )


def test_a_folder_that_holds_a_backfill_is_not_overwritten(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    verified(log, app, staging=log.path / "staging")
    assert message(StateError, log, app, staging=log.path / "staging") == (
        "FOLDER/staging holds a backfill already\n"
        "  next: name another folder with --staging, or leave it out to use a temporary folder"
    )


def test_a_limit_below_zero_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    told = message(ConfigError, log, program("word count", log), limit=-1)
    assert told.startswith("limit cannot be -1\n")
    assert told.endswith("next: give the number of differences to keep, 0 or more")


# Sources that do not hold what it has processed


def test_a_log_that_has_lost_its_beginning_is_refused(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 2)
    log.admin.delete_records({TopicPartition("lines", 1): 7}).wait()
    assert message(OffsetOutOfRangeError, log, app) == (
        "the history of lines-1 has lost its beginning\n"
        "  where: embedded log at FOLDER/log.db\n"
        "  why: its first offset there is 7, and the application has processed records before it, or may have\n"
        "  next: read the topic from an archive that has all of it: --source lines=parquet:FOLDER"
    )


def test_what_the_log_has_lost_is_read_from_an_archive(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 2)
    source = EmbeddedSource(str(log.path / "log.db"))
    archive(source, ["lines"], str(log.path / "archive"), clock=SystemClock())
    log.admin.delete_records({TopicPartition("lines", 1): 7}).wait()
    sources = {"lines": ParquetSource(str(log.path / "archive")), "*": source}
    assert verified(log, app, sources=sources).equal
    append(log, history("word count", 6, 2))
    run_to_the_end(log, app)
    refused = message(OffsetOutOfRangeError, log, app, sources=sources)
    assert refused.startswith("the history of lines-0 ends before the application\n")
    assert (
        "next: archive the later records first (pystreams archive), or read the topic from the log" in refused
    )


def test_sources_without_offsets_are_refused(new_log: NewLog) -> None:
    log = new_log("log")
    app = ran(log, "word count", 1)
    (log.path / "files").mkdir()
    (log.path / "files" / "one.json").write_text(
        '{"topic": "lines", "partition": 0, "timestamp": 1, "value": "w1"}\n', encoding="utf-8"
    )
    source = JsonSource(str(log.path / "files"), topic="lines", approximate=True)
    assert message(ConfigError, log, app, sources=source) == (
        "the records of a source have no offsets, so history cannot end where the application has come to\n"
        f"  where: {source.description.replace(str(log.path), 'FOLDER')}\n"
        "  next: read history from the log, or from an archive or a table that has the offsets of its records"
    )
