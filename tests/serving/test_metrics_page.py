"""A running application shows its metrics at ``/metrics``, under the names that dashboards for Kafka Streams know."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest

from pystreams import FixedKeyProcessor, Streams, Suppressed, TimeWindows
from pystreams.metrics.catalogue import MEANINGS
from pystreams.serving.address import Address
from pystreams.serving.server import HttpServer
from pystreams.serving.watched import WatchedClient
from tests.live.support import Log, caught_up, eventually, running
from tests.serving.http_kit import get, scrape

pytestmark = pytest.mark.live

THREAD = "kafka_streams_stream_thread_metrics"
TASK = "kafka_streams_stream_task_metrics"
STATE = "kafka_streams_stream_state_metrics"


@pytest.fixture
def log(tmp_path) -> Iterator[Log]:
    log = Log(tmp_path)
    log.create("in", "out", partitions=2)
    yield log
    log.close()


class Marking(FixedKeyProcessor[str, int, int]):
    """Counts in a metric of the program's own."""

    def init(self, context) -> None:
        self.context = context
        self.odd = context.metrics.counter("odd values-total", kind="whole number")

    def process(self, record) -> None:
        self.odd.add(record.value % 2)
        self.context.forward(record)


def windowed(log: Log):
    """Counts in windows of ten seconds, without a grace."""
    app = log.app("counting", commit_interval_ms=100)
    windows = TimeWindows.tumbling(timedelta(seconds=10), grace=timedelta(0))
    stream = app.stream("in", key=str, value=int).process_values(Marking, value=int)
    stream.group_by_key().windowed_by(windows).count(name="counts").to_stream(
        lambda key, _: key.key, key=str
    ).to("out")
    return app


@pytest.fixture
def served(log) -> Iterator[tuple[Streams, Address]]:
    """An application that has processed 1,000 records in time, and 10 that were late."""
    for partition in (0, 1):
        log.write("in", [("a", n, 100 * n) for n in range(500)], partition=partition)
        log.write("in", [("late", 0, 0)] * 5, partition=partition)
    streams = Streams(windowed(log), broker=log.broker)
    with HttpServer(Address.parse("127.0.0.1:0"), WatchedClient(streams, None)) as server:
        streams.start()
        try:
            caught_up(streams)
            yield streams, server.address
        finally:
            streams.close()


def test_work_is_counted_per_thread_and_per_task_and_timed(served):
    _, address = served
    seen = scrape(address)
    assert seen.total(f"{THREAD}_process_total") == 1_010
    assert seen.total(f"{TASK}_process_total", task_id="0_0") == 505
    assert seen.total(f"{TASK}_process_total", task_id="0_1") == 505
    for name in ("process", "poll", "commit"):
        assert seen.total(f"{THREAD}_{name}_total") > 0, name
        assert seen.total(f"{THREAD}_{name}_rate") > 0, name
        average, longest = (seen.total(f"{THREAD}_{name}_latency_{kind}") for kind in ("avg", "max"))
        assert 0 < average <= longest, name
        assert 0 < seen.total(f"{THREAD}_{name}_ratio") < 1, name
    assert 0 < seen.total(f"{TASK}_process_latency_avg", task_id="0_0") < 1_000


def test_what_was_dropped_is_counted_by_task_and_by_step_and_what_was_late_by_step(served):
    _, address = served
    seen = scrape(address)
    assert seen.total(f"{TASK}_dropped_records_total") == 10
    assert seen.total("pystreams_late_records_total") == 10
    steps = {labels["processor_node_id"] for labels in seen.labels("pystreams_late_records_total")}
    assert len(steps) == 1
    assert seen.total("pystreams_step_dropped_records_total", processor_node_id=steps.pop()) == 10
    assert seen.total("pystreams_late_records_grace_needed_max_ms", task_id="0_0") > 0


def test_each_dead_letter_is_counted_by_the_task_that_has_written_it(log):
    log.create("dead")
    log.write("in", [("a", 4, 0), ("b", 0, 1)], partition=0)
    log.write("in", [("c", "no number", 2)], partition=0, value=str)
    log.write("in", [("d", 0, 3)], partition=1)
    app = log.app(
        "dividing",
        processing_exception_handler="dead_letter",
        deserialization_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead",
    )
    app.stream("in", key=str, value=int).map_values(lambda value: 100 // value, value=int).to("out")
    streams = Streams(app, broker=log.broker)
    with HttpServer(Address.parse("127.0.0.1:0"), WatchedClient(streams, None)) as server, closing(streams):
        streams.start()
        caught_up(streams)
        seen = scrape(server.address)
        assert seen.total("pystreams_dead_letters_total", task_id="0_0") == 2
        assert seen.total("pystreams_dead_letters_total", task_id="0_1") == 1
        assert len(log.read("dead", value=bytes)) == 3


def test_lag_is_there_for_each_partition_and_falls_to_nothing(served, log):
    _, address = served
    lag = "kafka_consumer_consumer_fetch_manager_metrics_records_lag"
    eventually(lambda: len(scrape(address).labels(lag)) == 2)
    assert {labels["partition"] for labels in scrape(address).labels(lag)} == {"0", "1"}
    assert {labels["topic"] for labels in scrape(address).labels(lag)} == {"in"}
    assert scrape(address).total(lag) == 0


def test_lag_is_what_waits_while_the_client_is_paused(served, log):
    streams, address = served
    streams.pause()
    log.write("in", [("a", n, 100_000 + n) for n in range(70)], partition=1)
    lag = "kafka_consumer_consumer_fetch_manager_metrics_records_lag"
    eventually(lambda: scrape(address).total(lag, partition="1") == 70)
    assert scrape(address).total(lag, partition="0") == 0
    streams.resume()
    eventually(lambda: scrape(address).total(lag) == 0)


def test_states_are_numbers_as_in_java(served):
    streams, address = served
    name = "kafka_streams_stream_metrics_client_state"
    eventually(lambda: scrape(address).total(f"{THREAD}_thread_state") == 4)
    assert scrape(address).total(name, client_id=streams.client_id) == 2
    assert scrape(address).total("kafka_streams_stream_metrics_alive_stream_threads") == 1
    assert scrape(address).total("pystreams_tasks") == 2
    assert scrape(address).total("pystreams_rebalance_total") >= 1
    streams.close()
    assert scrape(address).total(name) == 4
    assert scrape(address).labels("pystreams_tasks") == []


def test_a_programs_own_metrics_are_there_whatever_their_names(served):
    _, address = served
    seen = scrape(address)
    assert seen.total("pystreams_application_odd_values_total", kind="whole number") == 500
    assert seen.kinds["pystreams_application_odd_values"] == "counter"


def test_kinds_and_meanings_are_shown(served):
    _, address = served
    seen = scrape(address)
    assert seen.kinds[f"{THREAD}_process"] == "counter"
    assert seen.kinds[f"{THREAD}_process_rate"] == "gauge"
    text = get(address, "/metrics").text
    assert f"# HELP {THREAD}_process_total {MEANINGS['stream-thread-metrics', 'process-total']}" in text


def test_scrapers_that_prefer_openmetrics_get_it(served):
    _, address = served
    page = get(address, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert page.headers["content-type"].startswith("application/openmetrics-text")
    assert page.text.endswith("# EOF\n")


def test_the_same_is_there_from_code(served):
    streams, address = served
    assert streams.metrics.total("process-total") == scrape(address).total(f"{TASK}_process_total") == 1_010
    assert streams.metrics.total("process-total", task_id="0_1") == 505
    wanted = {"process-rate", "commit-latency-max", "records-lag", "thread-state"}
    # The lag is that of a moment ago, when it may not have been known yet.
    eventually(lambda: wanted <= {sample.name for sample in streams.metrics.snapshot()})


def test_stores_and_their_caches_show_how_they_do(served, log):
    _, address = served
    seen = eventually(lambda: (now := scrape(address)).labels(f"{STATE}_estimate_num_keys") and now)
    for task_id in ("0_0", "0_1"):
        store = {"rocksdb_window_state_id": "counts", "task_id": task_id}
        assert seen.total(f"{STATE}_estimate_num_keys", **store) > 0
        assert seen.total(f"{STATE}_size_all_mem_tables", **store) > 0
        cache = {"record_cache_id": "counts", "task_id": task_id}
        assert seen.total("pystreams_cache_size_bytes_total", **cache) > 0
        # 500 records in five windows: only the first of each finds nothing.
        assert 5 <= seen.total("pystreams_cache_misses_total", **cache) <= 10
        assert seen.total("pystreams_cache_writes_total", **cache) == 500
    assert seen.kinds["pystreams_cache_size_bytes_total"] == "gauge"


def test_what_a_suppressed_table_holds_back_is_shown(log):
    log.write("in", [(str(key), 1, 0) for key in range(7)], partition=0)
    app = log.app("holding")
    held = app.table("in", key=str, value=int).suppress(Suppressed.until_time_limit(60_000))
    held.to_stream().to("out")
    streams = Streams(app, broker=log.broker)
    with HttpServer(Address.parse("0"), WatchedClient(streams, None)) as server, closing(streams):
        streams.start()
        count, size = (f"pystreams_suppression_buffer_{figure}" for figure in ("count", "size"))
        eventually(lambda: scrape(server.address).total(count, task_id="0_0") == 7)
        assert scrape(server.address).total(size, task_id="0_0") > 0
        assert scrape(server.address).total(size, task_id="0_1") == 0
        # A record that is late enough in stream time lets all others go.
        log.write("in", [("later", 1, 60_000)], partition=0)
        eventually(lambda: scrape(server.address).total(count, task_id="0_0") == 1)


def test_a_thread_that_hangs_costs_no_metric_of_its_stores(log):
    hangs, release = threading.Event(), threading.Event()

    def hang(_):
        hangs.set()
        release.wait(120)

    app = log.app("hanging")
    stream = app.stream("in", key=str, value=int).peek(hang)
    stream.group_by_key().count(name="counts").to_stream().to("out")
    streams = Streams(app, broker=log.broker)
    with HttpServer(Address.parse("0"), WatchedClient(streams, None)) as server, closing(streams):
        streams.start()
        running(streams)
        assert eventually(lambda: scrape(server.address).labels(f"{STATE}_estimate_num_keys"))
        log.write("in", [("a", 1, 1)])
        try:
            assert hangs.wait(60)
            seen = scrape(server.address)
            assert seen.total("pystreams_tasks") == 2
            assert seen.labels(f"{STATE}_estimate_num_keys")
            assert seen.labels("pystreams_cache_size_bytes_total")
        finally:
            release.set()


def test_a_thread_that_opens_its_clients_has_no_metrics_of_stores_yet(log, monkeypatch):
    opening, release, make = threading.Event(), threading.Event(), log.broker.consumer

    def slow(name, *given):
        if name.endswith("StreamThread-1-consumer"):
            opening.set()
            release.wait(120)
        return make(name, *given)

    monkeypatch.setattr(log.broker, "consumer", slow)
    streams = Streams(windowed(log), broker=log.broker)
    with closing(streams):
        streams.start()
        try:
            assert opening.wait(60)
            assert not [s for s in streams.metrics.snapshot() if s.name == "estimate-num-keys"]
        finally:
            release.set()
        running(streams)


def test_records_that_cannot_be_read_are_work_of_the_thread_and_not_of_the_task(log):
    log.write("in", [("a", 1, 0), ("b", 2, 1)], partition=0)
    log.write("in", [("a", "no number", 2)], partition=0, value=str)
    app = log.app("reading", deserialization_exception_handler="continue")
    app.stream("in", key=str, value=int).to("out")
    streams = Streams(app, broker=log.broker)
    with closing(streams):
        streams.start()
        caught_up(streams)
        by_tags = {len(s.tags): s.value for s in streams.metrics.snapshot() if s.name == "process-total"}
        assert by_tags[1] == 3
        assert streams.metrics.total("process-total", task_id="0_0") == 2
