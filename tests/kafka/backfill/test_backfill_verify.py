"""On Kafka live stores are compared with history of one moment: exactly once while it runs, at least once stopped."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

from pystreams.app import App
from pystreams.backfill import KafkaSource, Verified, verify
from pystreams.cli.commands.backfill.inputs import Places, open_source, parse_source
from pystreams.clock import SystemClock
from pystreams.errors import BrokerError
from pystreams.state.formats import pack_int64
from tests.backfill.kit import History, lines
from tests.backfill.live import append, create
from tests.backfill.programs import PROGRAMS, history
from tests.backfill.verification.verification_kit import OUTPUTS, written
from tests.kafka.support import Cluster, connect
from tests.live.support import Line, caught_up, eventually, run_to_the_end

EXACTLY_ONCE = "exactly_once_v2"
NOW_MS = SystemClock().now_ms()


def program(name: str, cluster: Cluster, guarantee: str) -> App:
    return PROGRAMS[name](
        processing_guarantee=guarantee,
        statestore_cache_max_bytes=0,
        max_task_idle_ms=0,
        commit_interval_ms=100,
        poll_ms=10,
        window_changelog_retention_ms=-1,
        state_dir=cluster.path / "state",
    )


def past(name: str, seed: int = 5) -> History:
    """Of today: versions of 1970 would be compacted at once."""
    return {
        topic: [[line._replace(timestamp=NOW_MS + line.timestamp) for line in lines] for lines in partitions]
        for topic, partitions in history(name, seed, 2).items()
    }


def verified(cluster: Cluster, app: App, **given: Any) -> Verified:
    isolation = "read_committed" if app.config.processing_guarantee == EXACTLY_ONCE else None
    source = KafkaSource(cluster.bootstrap_servers, isolation_level=isolation)
    return verify(app, cluster.broker, **{"sources": source, "wait_ms": 0, **given})


@pytest.fixture(params=["at_least_once", EXACTLY_ONCE])
def guarantee(request: pytest.FixtureRequest, cluster: Cluster) -> str:
    if request.param == EXACTLY_ONCE:
        cluster.broker = cluster.broker_with(exactly_once=True)
    return str(request.param)


@pytest.mark.parametrize("name", ["word count", "windowed sum", "joined streams", "joined versions"])
def test_an_application_that_was_stopped_is_equal(name: str, guarantee: str, cluster: Cluster) -> None:
    """Marks of transactions behind the last record of a repartition topic are no records."""
    records = past(name)
    create(cluster, records, OUTPUTS)
    append(cluster, records)
    app = program(name, cluster, guarantee)
    run_to_the_end(cluster, app)
    found = verified(cluster, app)
    assert found.equal, found
    assert found.counts.equal
    assert found.atomic == (guarantee == EXACTLY_ONCE)


def test_what_is_wrong_is_found(guarantee: str, cluster: Cluster) -> None:
    records = past("word count")
    create(cluster, records, OUTPUTS)
    append(cluster, records)
    app = program("word count", cluster, guarantee)
    run_to_the_end(cluster, app)
    written(cluster, "wc-counts-changelog", [Line(b"stray", pack_int64(7), NOW_MS + 390)], partition=1)
    (difference,) = verified(cluster, app).stores["counts"].differences
    assert (difference.kind, difference.key) == ("only live", b"stray")


def test_exactly_once_a_running_application_is_exact(cluster: Cluster) -> None:
    cluster.broker = cluster.broker_with(exactly_once=True)
    records = past("windowed sum")
    create(cluster, records, OUTPUTS)
    append(cluster, records)
    app = program("windowed sum", cluster, EXACTLY_ONCE)
    streams = cluster.start(app)
    caught_up(streams)
    stop = threading.Event()
    writer = threading.Thread(target=_write_until, args=(cluster, stop))
    writer.start()
    offsets = set()
    try:
        for _ in range(4):
            found = verified(cluster, program("windowed sum", cluster, EXACTLY_ONCE), wait_ms=60_000)
            assert found.equal, found
            offsets.add(sum(found.offsets.values()))
    finally:
        stop.set()
        writer.join()
    assert len(offsets) > 1


def _write_until(cluster: Cluster, stop: threading.Event) -> None:
    with (
        closing(connect(cluster.bootstrap_servers)) as broker,
        closing(broker.producer("writer", "writer")) as producer,
    ):
        number = 0
        while not stop.wait(0.3):
            for _ in range(5):
                number += 1
                key = b"k%d" % (number % 9)
                producer.send("amounts", None, key, pack_int64(number % 40), NOW_MS + 400 + number, ())
            producer.commit({}, None)


def test_at_least_once_a_running_application_is_refused(cluster: Cluster) -> None:
    records = past("windowed sum")
    create(cluster, records, OUTPUTS)
    append(cluster, records)
    app = program("windowed sum", cluster, "at_least_once")
    streams = cluster.start(app)
    caught_up(streams)
    with pytest.raises(
        BrokerError, match="sums is running, so its offsets and its changelogs are not of one"
    ):
        verified(cluster, program("windowed sum", cluster, "at_least_once"))
    assert streams.close(60_000)
    assert verified(cluster, program("windowed sum", cluster, "at_least_once")).equal


def test_exactly_once_records_of_aborted_transactions_are_no_history(cluster: Cluster) -> None:
    cluster.broker = cluster.broker_with(exactly_once=True)
    records = past("windowed sum")
    create(cluster, records, OUTPUTS)
    append(cluster, records)
    first = cluster.partitions("amounts")[0]
    # The commit of these records takes an offset, too, some moments after it was confirmed.
    eventually(lambda: cluster.admin.stable_end_offsets([first]) == cluster.admin.end_offsets([first]))
    end = cluster.admin.end_offsets([first])[first]
    with closing(cluster.broker.transactional_producer("other", "other")) as other:
        other.send("amounts", 0, b"aborted", pack_int64(1), NOW_MS + 1_000, ())
        eventually(lambda: cluster.admin.end_offsets([first])[first] > end)
    # Whoever takes the transactional id over aborts what the other one has left.
    cluster.broker.transactional_producer("next", "other").close()
    append(cluster, {"amounts": [lines([("k", 1, NOW_MS + 1_000)])]})
    app = program("windowed sum", cluster, EXACTLY_ONCE)
    run_to_the_end(cluster, app)
    places = Places(cluster.path, cluster.bootstrap_servers, {}, approximate=False, reads_committed=True)
    source = open_source(parse_source("kafka"), places)
    assert verified(cluster, app, sources=source).equal
    uncommitted = KafkaSource(cluster.bootstrap_servers)
    assert not verified(cluster, app, sources=uncommitted).equal
