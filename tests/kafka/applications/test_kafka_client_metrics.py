"""On Kafka, the clients' connections, requests and queues are among the metrics, by Java's names."""

from __future__ import annotations

from contextlib import closing, suppress

from pystreams.metrics.catalogue import group_of
from pystreams.metrics.exposed import exposed_name
from pystreams.runtime.streams import Streams
from tests.kafka.support import Cluster, connect
from tests.live.support import caught_up, eventually
from tests.serving.promql_kit import metrics, of_kafkas_clients, queries

WANTED = {
    ("consumer-metrics", "connection-count"),
    ("consumer-metrics", "request-total"),
    ("consumer-node-metrics", "request-latency-avg"),
    ("consumer-fetch-manager-metrics", "records-consumed-total"),
    ("producer-metrics", "requests-in-flight"),
    ("producer-metrics", "buffer-available-bytes"),
    ("producer-metrics", "record-queue-time-avg"),
    ("producer-node-metrics", "incoming-byte-total"),
    ("producer-topic-metrics", "record-send-total"),
    ("pystreams", "request-retries-total"),
}


def test_clients_report_while_they_work(cluster: Cluster):
    cluster.create("in", "out")
    cluster.write("in", [("k", n, n + 1) for n in range(100)])
    app = cluster.app("reporting")
    app.stream("in", key=str, value=int).to("out")
    with closing(connect(cluster.bootstrap_servers, statistics_interval_ms=100)) as broker:
        streams = Streams(app, broker=broker)
        with closing(streams):
            streams.start()
            caught_up(streams)

            def groups() -> set[tuple[str, str]]:
                # A record keeps the queues busy, whose times are those of the last report only.
                cluster.write("in", [("k", 1, 1_000)])
                return {(group_of(one.name, one.tags), one.name) for one in streams.metrics.snapshot()}

            seen: set[tuple[str, str]] = set()
            eventually(lambda: seen.update(groups()) or seen >= WANTED, "the clients' reports")
            client = f"{streams.progress().threads[0].name}-producer"

            def of_producer() -> dict[tuple[str, str | None], float]:
                return {
                    (one.name, dict(one.tags).get("topic")): one.value
                    for one in streams.metrics.snapshot()
                    if dict(one.tags).get("client_id") == client
                }

            # The last report may be from when some of the records were still to be sent.
            eventually(lambda: of_producer()["record-send-total", "out"] >= 100, "a report of all records")
            assert of_producer()["connection-count", None] >= 1


#: A broker without quotas delays nobody.
OF_QUOTAS = "throttle_time"


def test_what_dashboard_and_alerts_ask_of_clients_is_there(cluster: Cluster):
    asked = {name for query in queries() for name in metrics(query.text) if OF_QUOTAS not in name}
    missing = {name: labels for name, labels in of_kafkas_clients().items() if name in asked}
    assert len(missing) > 5
    cluster.create("in", "out")
    app = cluster.app("watched")
    app.stream("in", key=str, value=int).to("out")
    with closing(connect(cluster.bootstrap_servers, statistics_interval_ms=100)) as broker:
        streams = Streams(app, broker=broker)
        with closing(streams):
            streams.start()

            def all_seen() -> bool:
                cluster.write("in", [("k", 1, 1_000)])
                for one in streams.metrics.snapshot():
                    name = exposed_name(one)
                    if name in missing and missing[name] <= dict(one.tags).keys():
                        del missing[name]
                return not missing

            with suppress(AssertionError):
                eventually(all_seen, timeout_s=120)
            assert missing == {}


def test_without_an_interval_no_client_reports(cluster: Cluster):
    assert cluster.broker.samples() == []
