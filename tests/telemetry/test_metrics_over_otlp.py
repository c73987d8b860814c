"""A collector gets the metrics of a running application under the names that Prometheus sees, and the last ones at
the end."""

from __future__ import annotations

import pytest

from pystreams.metrics.exposed import exposed_labels, exposed_name
from pystreams.runtime.streams import Streams
from pystreams.telemetry import Telemetry
from tests.live.support import Log, eventually

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("to_collector")]

TASKS = "kafka_streams_stream_task_metrics"


@pytest.fixture
def log(tmp_path):
    log = Log(tmp_path)
    log.create("in", "out", partitions=2)
    yield log
    log.close()


def write(log: Log, records: int) -> None:
    for partition in range(2):
        log.write("in", [(str(n), n, n) for n in range(records)], partition=partition)


def copying(log: Log, name: str = "copying") -> Streams:
    app = log.app(name)
    app.stream("in", key=str, value=int).to("out")
    return Streams(app, broker=log.broker)


def test_metrics_come_while_the_application_runs(log, collector):
    streams = copying(log)
    with Telemetry(streams):
        streams.start()
        write(log, 10)
        eventually(lambda: collector.total(f"{TASKS}_process_total") == 20)
        write(log, 5)
        eventually(lambda: collector.total(f"{TASKS}_process_total") == 30)
        streams.close()


def test_names_labels_and_values_are_those_of_the_registry(log, collector):
    write(log, 10)
    streams = copying(log)
    with Telemetry(streams):
        streams.run(until_caught_up=True)
        samples = streams.metrics.snapshot()
    wanted = {
        (
            exposed_name(sample),
            tuple(sorted(exposed_labels(streams.client_id, sample).items())),
            sample.counts,
        )
        for sample in samples
    }
    found = {
        (point.name, tuple(sorted(point.labels.items())), point.counts)
        for name in {point.name for point in collector.points}
        for point in collector.latest(name)
    }
    assert wanted <= found
    assert collector.total(f"{TASKS}_process_total") == 20
    assert {point.labels["task_id"] for point in collector.latest(f"{TASKS}_process_total")} == {"0_0", "0_1"}


def test_the_last_values_come_at_the_end_however_long_the_interval_is(log, collector, monkeypatch):
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "3600000")
    write(log, 10)
    streams = copying(log)
    with Telemetry(streams):
        streams.metrics.counter("made-late-total", shop="north").add(3)
        streams.run(until_caught_up=True)
        assert not collector.points
    assert collector.total(f"{TASKS}_process_total") == 20
    [own] = collector.latest("pystreams_application_made_late_total")
    assert (own.value, own.labels["shop"], own.counts) == (3, "north", True)


def test_a_metric_that_a_program_makes_later_comes_too(log, collector):
    streams = copying(log)
    with Telemetry(streams):
        eventually(lambda: collector.points)
        streams.metrics.gauge("queue-length").set(7)
        eventually(lambda: collector.total("pystreams_application_queue_length") == 7)


def test_a_series_that_is_there_twice_is_not_added_up(log, collector):
    streams = copying(log)
    for tag in ("a-b", "a_b"):
        streams.metrics.counter("twice-total", **{tag: "x"}).add(2)
    with Telemetry(streams):
        pass
    assert collector.total("pystreams_application_twice_total") == 2


def test_the_service_is_the_application_and_the_instance_one_of_a_kind(log, collector):
    for _ in range(2):
        with Telemetry(copying(log, "shop")):
            pass
    [resource] = {tuple(sorted(point.resource.items())) for point in collector.points}
    assert dict(resource)["service.name"] == "shop"
    assert len(dict(resource)["service.instance.id"]) == 36


def test_opentelemetrys_own_variables_name_service_and_instance(log, collector, monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders")
    monkeypatch.setenv(
        "OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=pod-7,deployment.environment.name=test"
    )
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret")
    with Telemetry(copying(log)):
        pass
    resource = collector.points[0].resource
    assert resource["service.name"] == "orders"
    assert resource["service.instance.id"] == "pod-7"
    assert resource["deployment.environment.name"] == "test"
    assert {request.get("authorization") for request in collector.requests} == {"Bearer secret"}


def test_the_workers_of_one_environment_are_distinguished(log, collector, monkeypatch):
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=pod-7")
    for worker in (1, 2):
        with Telemetry(copying(log), worker=worker):
            pass
    assert {point.resource["service.instance.id"] for point in collector.points} == {"pod-7-1", "pod-7-2"}


def test_metrics_can_be_switched_off(log, collector, monkeypatch):
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    with Telemetry(copying(log)):
        pass
    assert not collector.points
