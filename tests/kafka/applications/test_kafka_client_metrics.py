"""On Kafka, the clients' connections, requests and queues are among the metrics, by Java's names."""

from __future__ import annotations

from contextlib import closing, suppress

from pystreams.metrics.exposed import exposed_name
from pystreams.runtime.streams import Streams
from tests.kafka.support import Cluster, connect
from tests.live.support import caught_up, eventually
from tests.serving.promql_kit import catalogue, of_kafkas_clients

#: A broker without quotas delays nobody; ``tests/unit/broker/kafka/test_kafka_statistics.py`` has reports of delays.
OF_QUOTAS = "throttle_time"


def test_clients_report_the_metrics_of_the_catalogue_while_they_work_and_no_others(cluster: Cluster):
    missing = {name: labels for name, labels in of_kafkas_clients().items() if OF_QUOTAS not in name}
    assert len(missing) > 30
    cluster.create("in", "out")
    cluster.write("in", [("k", n, n + 1) for n in range(100)])
    app = cluster.app("reporting")
    app.stream("in", key=str, value=int).to("out")
    with closing(connect(cluster.bootstrap_servers, statistics_interval_ms=100)) as broker:
        streams = Streams(app, broker=broker)
        with closing(streams):
            streams.start()
            caught_up(streams)
            seen: set[str] = set()

            def all_seen() -> bool:
                # A record keeps the queues busy, whose times are those of the last report only.
                cluster.write("in", [("k", 1, 1_000)])
                for one in streams.metrics.snapshot():
                    name = exposed_name(one)
                    seen.add(name)
                    if missing.get(name, {""}) <= dict(one.tags).keys():
                        del missing[name]
                return not missing

            with suppress(AssertionError):
                eventually(all_seen, timeout_s=120)
            assert missing == {}
            assert seen <= catalogue().keys()
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


def test_without_an_interval_no_client_reports(cluster: Cluster):
    assert cluster.broker.samples() == []
