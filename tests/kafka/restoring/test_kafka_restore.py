"""Stores come back from changelogs as a real broker leaves them: compacted, cut off at their beginning, also while they
are read, and with the marks of transactions at their end."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from pystreams.app import App
from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition
from pystreams.runtime.streams import Streams
from tests.examples import chosen
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.kafka.trouble_support import cluster_on
from tests.live.restore_kit import Held, HoldingBroker, Listener, counting, with_listener
from tests.live.support import TIMEOUT_S, caught_up, eventually, run_to_the_end

pytestmark = pytest.mark.slow

CHANGELOG = TopicPartition("counting-counts-changelog", 0)
KEYS = 7
#: Each batch ends a segment, and what may be compacted is compacted at once.
QUICK = {
    "cleanup.policy": "compact",
    "segment.ms": "1",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1",
}
PLAIN = {"cleanup.policy": "compact"}
EVERY_CHANGE = {"statestore_cache_max_bytes": 0}


@pytest.fixture(scope="module")
def tidy_server(server: KafkaServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """Its cleaner never rests. (``server`` is asked for because it knows whether Kafka can be had.)"""
    tidy = KafkaServer(tmp_path_factory.mktemp("tidy"), properties={"log.cleaner.backoff.ms": "100"})
    yield tidy
    tidy.stop()


@pytest.fixture
def log(tidy_server: KafkaServer, tmp_path: Path) -> Iterator[Cluster]:
    with cluster_on(tidy_server, tmp_path) as cluster:
        yield cluster


GUARANTEES = ("at_least_once", "exactly_once_v2")


def with_guarantee(*usual: str) -> pytest.MarkDecorator:
    """The test's parameter ``guarantee``. What differs for a restore: whether transactions have left marks, and whether
    what they have given up is passed over."""
    return pytest.mark.parametrize("guarantee", chosen(GUARANTEES, usual.__contains__), indirect=True)


@pytest.fixture
def guarantee(log: Cluster, request: pytest.FixtureRequest) -> str:
    """The applications of the test work so."""
    log.broker = log.broker_with(exactly_once=request.param == "exactly_once_v2")
    return request.param


@pytest.fixture
def exactly_once(log: Cluster) -> dict[str, str]:
    """The settings of applications that do."""
    log.broker = log.broker_with(exactly_once=True)
    return {"processing_guarantee": "exactly_once_v2"}


class Input:
    """What was written, and what has to be counted."""

    def __init__(self, log: Cluster, changelog: Mapping[str, str]) -> None:
        self.log = log
        self.counts: Counter[str] = Counter()
        log.create("in", "out")
        log.create(CHANGELOG.topic, config=changelog)

    def write(self, records: int) -> None:
        keys = [f"k{number % KEYS}" for number in range(records)]
        # A segment ends when a record comes that is later than its first one.
        begin_ms = 1_000 * self.counts.total()
        self.log.write("in", [(key, 1, begin_ms + number) for number, key in enumerate(keys)])
        self.counts.update(keys)

    def check(self) -> None:
        assert self.log.table("out") == self.counts


def forget(log: Cluster) -> None:
    shutil.rmtree(log.path / "state")


def end_of(log: Cluster) -> int:
    return log.admin.end_offsets([CHANGELOG])[CHANGELOG]


def delete_before(log: Cluster, offset: int) -> None:
    """Of a compacted topic nobody may delete records: so it is another one meanwhile."""
    log.admin.alter_topic_config(CHANGELOG.topic, {"cleanup.policy": "compact,delete", "retention.ms": "-1"})

    def deleted() -> bool:
        try:
            log.admin.delete_records({CHANGELOG: offset}).wait()
        except BrokerError as error:
            # The controller has answered for the new policy before the partition's leader heard of it.
            if "POLICY_VIOLATION" not in str(error):
                raise
            return False
        return True

    eventually(deleted, "the leader knows the new policy")
    log.admin.alter_topic_config(CHANGELOG.topic, PLAIN)


@with_guarantee("at_least_once")
def test_of_a_compacted_changelog_only_what_is_left_is_read(log: Cluster, guarantee: str) -> None:
    written = Input(log, QUICK)
    settings = {**EVERY_CHANGE, "processing_guarantee": guarantee}
    for _ in range(3):
        written.write(50)
        run_to_the_end(log, counting(log, **settings))
    eventually(lambda: len(log.lines(CHANGELOG)) < 100, "the cleaner has come by")
    forget(log)
    written.write(1)
    listener = with_listener(log, counting(log, **settings))
    (restored,) = listener.ended.values()
    assert restored < 100 < end_of(log)
    written.check()


class Rows:
    """A table of rows, whose changelog is compacted at once."""

    changelog = TopicPartition("table-rows-changelog", 0)

    def __init__(self, log: Cluster, guarantee: str) -> None:
        self.names = [f"k{number}" for number in range(50)]
        self.log = log
        self.guarantee = guarantee
        log.create("in", "out")
        log.create(self.changelog.topic, config=QUICK)

    def app(self) -> App:
        app = self.log.app("table", processing_guarantee=self.guarantee, **EVERY_CHANGE)
        app.stream("in", key=str, value=int).to_table(name="rows").to_stream().to("out")
        return app

    def write(self, names: Iterable[str], value: int | None, time_ms: int) -> None:
        """Write rows, None to delete them, and process them."""
        self.log.write("in", [(name, value, time_ms) for name in names])
        run_to_the_end(self.log, self.app())

    def logged(self) -> list[bytes | None]:
        """The keys that the changelog holds with a value."""
        return [line.key for line in self.log.lines(self.changelog).values() if line.value]

    def keys(self, streams: Streams) -> list[str]:
        caught_up(streams)
        return [key for key, _ in streams.store("rows").all()]


@with_guarantee("exactly_once_v2")
def test_of_rows_that_were_deleted_nothing_comes_back(log: Cluster, guarantee: str) -> None:
    rows = Rows(log, guarantee)
    rows.write(rows.names, 1, 1_000)
    rows.write(rows.names, None, 2_000)
    rows.write(["other"], 1, 3_000)
    eventually(lambda: rows.logged() == [b"other"], "the cleaner has come by")
    forget(log)
    assert rows.keys(log.start(rows.app())) == ["other"]


@with_guarantee("exactly_once_v2")
def test_a_changelog_that_holds_deletions_alone_makes_an_empty_store(log: Cluster, guarantee: str) -> None:
    rows = Rows(log, guarantee)
    rows.write(rows.names, 1, 1_000)
    # What is deleted is compacted away once its deletion is in a segment that has ended.
    rows.write(rows.names, None, 2_000)
    rows.write(rows.names, None, 3_000)
    eventually(lambda: not rows.logged(), "the rows are gone")
    forget(log)
    streams = log.start(rows.app())
    assert rows.keys(streams) == []
    log.write("in", [("other", 1, 4_000)])
    assert rows.keys(streams) == ["other"]


@with_guarantee("exactly_once_v2")
def test_a_changelog_that_holds_nothing_behind_its_beginning_is_complete(
    log: Cluster, guarantee: str
) -> None:
    written = Input(log, PLAIN)
    written.write(50)
    run_to_the_end(log, counting(log, processing_guarantee=guarantee))
    end = end_of(log)
    delete_before(log, end)
    forget(log)
    listener = with_listener(log, counting(log, processing_guarantee=guarantee))
    assert listener.started == [(str(CHANGELOG), end, end)] or not listener.started
    # What was counted before is gone with the changelog, and new counts begin.
    written.counts.clear()
    written.write(20)
    streams = log.start(counting(log, processing_guarantee=guarantee))
    caught_up(streams)
    assert {key: value.value for key, value in streams.store("counts").all()} == written.counts


def test_a_changelog_that_ends_in_the_mark_of_a_transaction_is_complete_behind_it(
    log: Cluster, exactly_once: dict[str, str]
) -> None:
    written = Input(log, PLAIN)
    written.write(50)
    run_to_the_end(log, counting(log, **exactly_once))
    assert max(log.lines(CHANGELOG)) < end_of(log) - 1, "the last offset is that of a mark"
    forget(log)
    listener = with_listener(log, counting(log, **exactly_once))
    assert listener.started == [(str(CHANGELOG), 0, end_of(log))]
    written.write(50)
    run_to_the_end(log, counting(log, **exactly_once))
    written.check()


def transaction(log: Cluster) -> Producer:
    """Somebody's transaction that is open, and has written to the changelog."""
    producer = Producer({"bootstrap.servers": log.bootstrap_servers, "transactional.id": "somebody"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(CHANGELOG.topic, (1_000).to_bytes(8, "big"), b"k0", CHANGELOG.partition)
    producer.flush(TIMEOUT_S)
    return producer


@with_guarantee(*GUARANTEES)
def test_what_a_transaction_that_was_given_up_has_written_is_passed_over(
    log: Cluster, guarantee: str
) -> None:
    written = Input(log, PLAIN)
    written.write(50)
    run_to_the_end(log, counting(log, processing_guarantee=guarantee))
    end = end_of(log) + 2
    transaction(log).abort_transaction(TIMEOUT_S)
    eventually(lambda: end_of(log) == end, "the record is there, and the mark of its end")
    forget(log)
    written.write(50)
    listener = with_listener(log, counting(log, processing_guarantee=guarantee))
    assert listener.started == [(str(CHANGELOG), 0, end)]
    written.check()


def test_a_restore_waits_for_the_end_of_a_transaction_and_nothing_else_does(log: Cluster) -> None:
    written = Input(log, PLAIN)
    written.write(50)

    def counting_and_copying() -> App:
        app = counting(log)
        app.stream("other", key=str, value=int).to("copied")
        return app

    log.create("other", "copied")
    run_to_the_end(log, counting_and_copying())
    under_way = transaction(log)
    forget(log)
    written.write(50)
    streams = log.start(counting_and_copying())
    log.write("other", [("a", 1, 1)])
    eventually(lambda: log.table("copied") == {"a": 1}, "the other task works")
    # The thread that restores may ask for the changelog's offsets only after the other task has begun.
    eventually(lambda: streams.progress().restoring, "the restore has begun")
    (restore,) = streams.progress().restoring
    assert restore.position < restore.end_offset
    under_way.abort_transaction(TIMEOUT_S)
    caught_up(streams)
    written.check()


def test_local_state_before_the_beginning_of_its_changelog_is_restored_anew(
    log: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    written = Input(log, PLAIN)
    written.write(50)
    run_to_the_end(log, counting(log))
    behind = end_of(log)
    for _ in range(2):
        written.write(50)
        run_to_the_end(log, counting(log, state_dir=str(log.path / "elsewhere")))
    # Every key was written at least once behind this offset.
    beginning = end_of(log) - KEYS
    assert beginning > behind
    delete_before(log, beginning)
    kept = log.lines(CHANGELOG)
    written.write(1)
    listener = with_listener(log, counting(log))
    assert listener.started[0][1] == beginning
    assert listener.ended == {str(CHANGELOG): len(kept)}
    assert "the local state of store counts lies outside of its changelog" in caplog.text
    written.check()


class Late(Held):
    """A consumer that begins to read only when it may."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        assert self._go_on.wait(TIMEOUT_S)
        self._inner.assign(positions)

    def poll(self, timeout_ms: float) -> Any:
        return self._inner.poll(timeout_ms)


class LateBroker(HoldingBroker):
    holds = Late


def test_a_restore_that_falls_out_of_its_changelog_begins_anew(
    log: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    written = Input(log, PLAIN)
    written.write(50)
    run_to_the_end(log, counting(log))
    deleted = end_of(log)
    written.write(50)
    run_to_the_end(log, counting(log))
    forget(log)
    go_on, listener = threading.Event(), Listener()
    streams = Streams(counting(log), broker=LateBroker(log.broker, go_on))
    streams.set_restore_listener(listener)
    streams.start()
    try:
        eventually(lambda: listener.started, "its offsets are known")
        delete_before(log, deleted)
        go_on.set()
        written.write(1)
        caught_up(streams)
    finally:
        go_on.set()
        streams.close()
    assert [start for _, start, _ in listener.started] == [0, deleted]
    assert streams.failure is None
    written.check()
