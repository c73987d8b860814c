"""Records are counted by topic where they come in and go out, with their bytes and their age."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from pystreams import Streams
from pystreams.metrics import Sample
from tests.live.support import Log, caught_up

pytestmark = pytest.mark.live


@pytest.fixture
def log(tmp_path) -> Iterator[Log]:
    log = Log(tmp_path)
    log.create("left", "right", "even", "odd", "joined")
    yield log
    log.close()


def samples(streams: Streams, name: str) -> dict[tuple[str, ...], float]:
    """The values of a metric by its labels, without thread and task."""

    def labels(sample: Sample) -> tuple[str, ...]:
        return tuple(text for tag, text in sample.tags if tag not in ("thread_id", "task_id", "client_id"))

    return {labels(sample): sample.value for sample in streams.metrics.snapshot() if sample.name == name}


def stored_bytes(log: Log, topic: str) -> int:
    """What the records of a topic take in the log."""
    with closing(sqlite3.connect(log.path / "log.db")) as database:
        statement = (
            "SELECT sum(length(columns)) FROM batches JOIN partitions USING (partition_id)"
            " JOIN topics USING (topic_id) WHERE topics.name = ?"
        )
        ((found,),) = database.execute(statement, (topic,)).fetchall()
    assert found > 0
    return int(found)


def test_sources_and_sinks_count_what_they_read_and_write(log):
    now_ms = time.time_ns() // 1_000_000
    log.write("left", [("k", n, now_ms - 3_600_000) for n in range(10)])
    log.write("right", [("key", 1, now_ms - 7_200_000)] * 4)
    app = log.app("flowing", commit_interval_ms=100)
    numbers = app.stream("left", key=str, value=int, step="from-left")
    numbers.filter(lambda value: value % 2 == 0).to("even", step="to-even")
    # A sink that chooses its topic for each record.
    app.stream("right", key=str, value=int, step="from-right").merge(numbers).to(
        lambda value: "odd" if value % 2 else "even", step="to-either"
    )
    streams = Streams(app, broker=log.broker)
    with closing(streams):
        streams.start()
        caught_up(streams)
        assert samples(streams, "records-consumed-total") == {
            ("from-left", "left"): 10,
            ("from-right", "right"): 4,
        }
        assert samples(streams, "bytes-consumed-total") == {
            ("from-left", "left"): stored_bytes(log, "left"),
            ("from-right", "right"): stored_bytes(log, "right"),
        }
        assert samples(streams, "records-produced-total") == {
            ("to-even", "even"): 5,
            ("to-either", "even"): 5,
            ("to-either", "odd"): 5 + 4,
        }
        least, average, greatest = (
            samples(streams, f"record-e2e-latency-{kind}") for kind in ("min", "avg", "max")
        )
        assert least.keys() == {("from-left",), ("from-right",), ("to-even",), ("to-either",)}
        for step, hours in ((("from-left",), 1), (("from-right",), 2), (("to-even",), 1)):
            assert hours * 3_600_000 <= least[step] <= average[step] <= greatest[step]
            assert greatest[step] < (hours + 0.5) * 3_600_000
        # What one turn of a second wrote.
        either = ("to-either",)
        assert 3_600_000 <= least[either] <= average[either] <= greatest[either] < 2.5 * 3_600_000


def test_records_that_a_cache_holds_are_counted_at_the_sink_when_they_leave_it(log):
    log.write("left", [("a", 1, 0), ("a", 1, 1), ("b", 1, 2)])
    app = log.app("cached", commit_interval_ms=100)
    counts = app.stream("left", key=str, value=int).group_by_key().count(name="counts")
    counts.to_stream().to("joined", step="results")
    streams = Streams(app, broker=log.broker)
    with closing(streams):
        streams.start()
        caught_up(streams)
        assert samples(streams, "records-produced-total") == {("results", "joined"): len(log.read("joined"))}


def test_operations_of_stores_are_measured_at_the_level_debug_only(log):
    log.write("left", [(str(n % 5), 1, n) for n in range(100)])
    seen = {}
    for level in ("INFO", "DEBUG"):
        app = log.app(f"measured-{level}", metrics_recording_level=level)
        app.stream("left", key=str, value=int).group_by_key().count(name="counts")
        streams = Streams(app, broker=log.broker)
        with closing(streams):
            streams.start()
            caught_up(streams)
            seen[level] = {
                sample.name: sample.value
                for sample in streams.metrics.snapshot()
                if dict(sample.tags).keys() & {"rocksdb_state_id", "record_cache_id"}
            }
    measured = {
        *(f"{operation}-latency-{kind}" for operation in ("get", "put") for kind in ("avg", "max")),
        *("get-rate", "put-rate", "hit-ratio-avg", "hit-ratio-min", "hit-ratio-max"),
        "cache-reads-total",
    }
    assert seen["DEBUG"].keys() - seen["INFO"].keys() == measured
    debug = seen["DEBUG"]
    assert debug["put-rate"] == pytest.approx(debug["get-rate"], rel=0.5)
    # In nanoseconds.
    assert 100 < debug["put-latency-avg"] <= debug["put-latency-max"]
    assert debug["cache-reads-total"] == 100
    # Of 100 reads, the first of each key finds nothing.
    assert debug["hit-ratio-min"] == 0
    assert debug["hit-ratio-max"] == pytest.approx(95 / 100)
    assert 0 < debug["hit-ratio-avg"] < 95 / 100
