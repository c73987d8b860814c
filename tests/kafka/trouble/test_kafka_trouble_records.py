"""Records that do not arrive: nothing is committed past them; the production handler decides about bad ones alone."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from random import Random

import pytest

from pystreams import Processor, Record, TimeWindows
from pystreams.broker.port import TopicSpec
from pystreams.clock import SystemClock
from pystreams.errors import DeliveryError, ProductionError, StreamsError
from pystreams.ids import TopicPartition
from tests.examples import chosen
from tests.kafka.server import KafkaServer
from tests.kafka.support import Cluster
from tests.kafka.trouble_support import failure_of
from tests.live.support import KEPT, TIMEOUT_S, caught_up, eventually, freeze

LIMIT = 5_000
#: Larger than the limit of the topic, or than what the producer itself takes.
TOO_LARGE = {"topic": LIMIT, "producer": 1_048_576}


def in_the_future() -> int:
    """A time that most topics take, which is an hour ahead at most."""
    return SystemClock().now_ms() + 1_800_000


def write_copies(cluster: Cluster, where: str, handler: str):
    cluster.create("in", "dead")
    limit = {"max.message.bytes": str(LIMIT)} if where == "topic" else {}
    cluster.admin.create_topics([TopicSpec("out", 1, {**KEPT, **limit})])
    app = cluster.app(
        "copying", errors_dead_letter_queue_topic_name="dead", production_exception_handler=handler
    )
    app.stream("in", key=str, value=int).map_values(lambda length: "x" * length).to("out", value=str)
    lengths = [10, 20, TOO_LARGE[where], 30, 40]
    cluster.write("in", [(f"k{i}", length, i + 1) for i, length in enumerate(lengths)])
    return cluster.start(app)


@pytest.mark.parametrize("where", ["topic", "producer"])
def test_a_record_that_is_too_large_is_named_with_its_step_and_input(cluster: Cluster, where: str):
    failure = failure_of(write_copies(cluster, where, "fail"))
    assert isinstance(failure, ProductionError)
    for told in ("task 0_0", "KSTREAM-SINK-", "in-0 offset 2", "topic out"):
        assert told in str(failure), failure
    # A slow start may have read the two before it alone, and committed them.
    assert all(at.offset <= 2 for at in cluster.committed("copying").values())


@pytest.mark.parametrize(
    ("where", "handler"),
    chosen(
        product(("topic", "producer"), ("continue", "dead_letter")),
        lambda case: case in (("topic", "dead_letter"), ("producer", "continue")),
    ),
)
def test_a_record_that_is_too_large_is_left_out_alone(cluster: Cluster, where: str, handler: str):
    streams = write_copies(cluster, where, handler)
    caught_up(streams)
    found = {record.key: len(record.value) for record in cluster.read("out", value=str)}
    assert found == {"k0": 10, "k1": 20, "k3": 30, "k4": 40}
    dead = [(record.key, record.value) for record in cluster.read("dead")]
    assert dead == ([("k2", TOO_LARGE[where])] if handler == "dead_letter" else [])


def test_many_records_that_are_small_enough_fit_a_topic_that_takes_small_batches_only(cluster: Cluster):
    cluster.create("in")
    cluster.admin.create_topics([TopicSpec("out", 1, {**KEPT, "max.message.bytes": str(LIMIT)})])
    app = cluster.app("copying")
    app.stream("in", key=str, value=int).map_values(lambda length: "x" * length).to("out", value=str)
    cluster.write("in", [(f"k{i}", 1_000, i + 1) for i in range(500)])
    caught_up(cluster.start(app))
    assert {record.key for record in cluster.read("out", value=str)} == {f"k{i}" for i in range(500)}


def test_a_record_without_a_key_for_a_compacted_topic_is_left_out_alone(cluster: Cluster):
    cluster.create("in")
    cluster.admin.create_topics([TopicSpec("out", 1, {"cleanup.policy": "compact"})])
    app = cluster.app("copying", production_exception_handler="continue")
    source = app.stream("in", key=str, value=int)
    source.map(lambda key, value: (None if value == 2 else key, value), key=str, value=int).to("out")
    cluster.write("in", [(f"k{i}", i, i + 1) for i in range(5)])
    caught_up(cluster.start(app))
    # At least once: the others may have been written by the attempts that found it.
    assert cluster.table("out") == {"k0": 0, "k1": 1, "k3": 3, "k4": 4}


def test_records_that_differ_in_their_time_only_are_distinguished_from_each_other(cluster: Cluster):
    cluster.create("in")
    config = {**KEPT, "message.timestamp.after.max.ms": "1000"}
    cluster.admin.create_topics([TopicSpec("out", 1, config)])
    app = cluster.app("copying", production_exception_handler="continue")
    app.stream("in", key=str, value=int).to("out")
    # The same twice: both are found, and nothing else.
    future = in_the_future()
    times = [1, future, 2, future, 3]
    cluster.write("in", [("k", 1, time) for time in times])
    caught_up(cluster.start(app))
    assert {record.timestamp for record in cluster.read("out")} == {1, 2, 3}


def test_a_record_that_compression_makes_small_enough_is_not_refused_with_one_that_stays_too_large(
    cluster: Cluster,
):
    cluster.create("in")
    cluster.admin.create_topics([TopicSpec("out", 1, {**KEPT, "max.message.bytes": str(LIMIT)})])
    cluster.broker = cluster.broker_with(client_settings={"producer.compression.type": "gzip"})
    app = cluster.app("copying", production_exception_handler="continue")
    noise = Random(7).randbytes(2 * LIMIT)

    def write(length: int) -> bytes:
        return noise[:length] if length == len(noise) else bytes(length)

    app.stream("in", key=str, value=int).map_values(write).to("out", value=bytes)
    lengths = [10 * LIMIT, len(noise), 10 * LIMIT + 1, 10]
    cluster.write("in", [(f"k{i}", length, i + 1) for i, length in enumerate(lengths)])
    caught_up(cluster.start(app))
    found = {record.key: len(record.value) for record in cluster.read("out", value=bytes)}
    assert found == {"k0": lengths[0], "k2": lengths[2], "k3": lengths[3]}


class Ahead(Processor[str, int, str, int]):
    """Gives some records a time that a topic does not take."""

    def __init__(self, future: int) -> None:
        self._future = future

    def process(self, record: Record[str, int]) -> None:
        ahead = record.value % 80 == 60
        self.context.forward(record.with_timestamp(self._future) if ahead else record)


@pytest.mark.parametrize(
    ("persistent", "cache_bytes"),
    chosen(
        product((True, False), (0, 1 << 20)),
        lambda case: case in ((True, 0), (False, 1 << 20)),
    ),
)
def test_what_is_done_again_to_find_a_refused_record_counts_once(
    cluster: Cluster, persistent: bool, cache_bytes: int
):
    cluster.create("in", "out", "windows")
    cluster.admin.create_topics([TopicSpec("timed", 1, {**KEPT, "message.timestamp.after.max.ms": "1000"})])
    app = cluster.app(
        "counting",
        production_exception_handler="continue",
        statestore_cache_max_bytes=cache_bytes,
        window_changelog_retention_ms=-1,
    )
    source = app.stream("in", key=str, value=int)
    future = in_the_future()
    source.process(lambda: Ahead(future), key=str, value=int).to("timed")
    grouped = source.group_by_key()
    grouped.count(name="counts", persistent=persistent).to_stream().to("out")
    windows = grouped.windowed_by(TimeWindows.tumbling(40)).count(name="windows", persistent=persistent)
    windows.to_stream(lambda window, count: f"{window.key}@{window.start}").to("windows", key=str)
    streams = cluster.start(app)
    counts: Counter[str] = Counter()
    in_windows: Counter[str] = Counter()
    for start in (0, 120, 240):
        records = [(f"k{i % 7}", i, i + 1) for i in range(start, start + 120)]
        counts.update(key for key, _, _ in records)
        in_windows.update(f"{key}@{time // 40 * 40}" for key, _, time in records)
        cluster.write("in", records)
        caught_up(streams)
    assert {record.value for record in cluster.read("timed")} == set(range(360)) - {60, 140, 220, 300}
    assert (cluster.table("out"), cluster.table("windows")) == (counts, in_windows)


def test_a_change_of_state_that_its_changelog_does_not_take_stops_the_task_whatever_the_handler_says(
    cluster: Cluster,
):
    cluster.create("in", "out")
    app = cluster.app("growing", production_exception_handler="continue")
    lengths = app.stream("in", key=str, value=int).group_by_key()
    lengths.aggregate(
        lambda: "",
        lambda text, length: text + "x" * length,
        name="texts",
        value=str,
        changelog_config={"max.message.bytes": str(LIMIT)},
    ).to_stream().map_values(len).to("out", value=int)
    cluster.write("in", [("k", LIMIT // 2, 1), ("k", LIMIT, 2)])
    failure = failure_of(cluster.start(app))
    assert isinstance(failure, StreamsError)
    assert "growing-texts-changelog" in str(failure)
    assert "task 0_0" in str(failure)


@pytest.mark.slow
def test_records_that_expire_while_the_broker_is_silent_are_written_again(
    fragile_server: KafkaServer, fragile: Cluster, caplog: pytest.LogCaptureFixture
):
    fragile.create("in", "out")
    fragile.broker = fragile.broker_with(
        client_settings={"producer.delivery.timeout.ms": "2000", "producer.request.timeout.ms": "1000"},
        session_timeout_ms=20_000,
    )
    at_work, go_on = threading.Event(), threading.Event()

    def held(value: int) -> int:
        if value == 1_500:
            at_work.set()
            assert go_on.wait(TIMEOUT_S)
        return value

    app = fragile.app("copying")
    app.stream("in", key=str, value=int).map_values(held).to("out", value=int)
    fragile.write("in", [(f"k{i}", i, i + 1) for i in range(1_000)])
    streams = fragile.start(app)
    caught_up(streams)
    written = 1_000

    def write_more() -> None:
        nonlocal written
        fragile.write("in", [(f"k{i}", i, i + 1) for i in range(written, written + 1_000)])
        written += 1_000

    @contextmanager
    def silent() -> Iterator[None]:
        freeze(fragile_server.pid)
        try:
            yield
        finally:
            os.kill(fragile_server.pid, signal.SIGCONT)

    with caplog.at_level(logging.WARNING):
        write_more()
        assert at_work.wait(TIMEOUT_S)
        with silent():
            go_on.set()
            eventually(lambda: "could not be written in time" in caplog.text, "a record expires")
        for pause_s in (0.0, 0.03):
            write_more()
            time.sleep(pause_s)  # Random moments, which may find no record at work.
            with silent():
                time.sleep(4.0)  # Longer than a record may wait: that is what this test is about.
    caught_up(streams)
    assert {record.key for record in fragile.read("out")} == {f"k{i}" for i in range(written)}


@pytest.mark.slow
def test_nothing_is_committed_past_a_record_that_expired(fragile_server: KafkaServer, fragile: Cluster):
    fragile.create("t")
    broker = fragile.broker_with(
        client_settings={"producer.delivery.timeout.ms": "2000", "producer.request.timeout.ms": "1000"}
    )
    producer = broker.producer("p", "p")
    producer.send("t", 0, b"k", b"before", 1, ())
    producer.commit({}, None)
    freeze(fragile_server.pid)
    try:
        producer.send("t", 0, b"k", b"expires", 2, ())
        for _ in range(2):  # the failure stays until what was done is forgotten
            with pytest.raises(DeliveryError, match="could not be written in time"):
                producer.commit({}, None)
    finally:
        os.kill(fragile_server.pid, signal.SIGCONT)
    producer.abort()
    producer.send("t", 0, b"k", b"after", 3, ())
    producer.commit({}, None)
    producer.close()
    values = [record.value for record in fragile.read("t", value=bytes)]
    assert [value for value in values if value != b"expires"] == [b"before", b"after"]


def test_what_is_sent_after_an_abort_arrives_although_the_client_still_forgets(cluster: Cluster):
    cluster.create("t", "log", partitions=4)
    producer = cluster.broker.producer("p", "p")
    sent = 0
    for attempt in range(100):
        for number in range(20):
            producer.send("t", number % 4, b"k", b"%d" % attempt, 1, ())
        producer.send_to_changelog("log", attempt % 4, b"k", b"v", 1, ())
        producer.commit({}, None)
        sent += 20
        producer.abort()
    producer.send("t", 0, b"k", b"forgotten", 1, ())
    producer.abort()
    producer.send("t", 0, b"k", b"last", 1, ())
    producer.commit({}, None)
    producer.close()
    ends = cluster.admin.end_offsets([TopicPartition("t", number) for number in range(4)])
    assert sum(ends.values()) in (sent + 1, sent + 2)
