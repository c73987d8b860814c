"""An OpenTelemetry collector in the test's process: it takes metrics and spans over OTLP, and keeps them decoded."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Point(NamedTuple):
    """A value of a metric, with the attributes of where it is from."""

    name: str
    labels: dict[str, Any]
    value: float
    counts: bool
    resource: dict[str, Any]


class Context(NamedTuple):
    """The ids of a span, in hexadecimal digits."""

    trace: str
    span: str

    @property
    def traceparent(self) -> bytes:
        """As a header of W3C says it of a sampled span."""
        return f"00-{self.trace}-{self.span}-01".encode()


class Span(NamedTuple):
    """A span, with the attributes of where it is from."""

    name: str
    context: Context
    parent: str
    links: list[Context]
    attributes: dict[str, Any]
    failed: bool
    resource: dict[str, Any]


class Collector:
    """Listens on this machine from ``with`` to its end."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.spans: list[Span] = []
        #: Whether it answers that it cannot take anything now.
        self.refuses = False
        #: The headers of each request.
        self.requests: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def environment(self) -> dict[str, str]:
        """Variables for who sends to it, soon and everything."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_METRIC_EXPORT_INTERVAL": "100",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_TRACES_SAMPLER": "always_on",
        }

    def latest(self, name: str) -> list[Point]:
        """The last value of each series of a metric."""
        found = {(str(p.labels), str(p.resource)): p for p in list(self.points) if p.name == name}
        return list(found.values())

    def total(self, name: str) -> float:
        """The sum of the last values of all series of a metric."""
        return sum(point.value for point in self.latest(name))

    def take(self, path: str, body: bytes) -> None:
        """What has come to a path."""
        if path == "/v1/metrics":
            self.points += _points(ExportMetricsServiceRequest.FromString(body))
        elif path == "/v1/traces":
            self.spans += _spans(ExportTraceServiceRequest.FromString(body))
        else:
            raise AssertionError(f"nobody sends to {path}")


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.requests.append(dict(self.headers))
            if not collector.refuses:
                collector.take(self.path, body)
            self.send_response(503 if collector.refuses else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def _points(request: ExportMetricsServiceRequest) -> Iterator[Point]:
    for of_resource in request.resource_metrics:
        resource = _attributes(of_resource.resource.attributes)
        for scope in of_resource.scope_metrics:
            for metric in scope.metrics:
                counts = metric.HasField("sum")
                for point in metric.sum.data_points if counts else metric.gauge.data_points:
                    value = getattr(point, point.WhichOneof("value"))
                    yield Point(metric.name, _attributes(point.attributes), value, counts, resource)


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for of_resource in request.resource_spans:
        resource = _attributes(of_resource.resource.attributes)
        for scope in of_resource.scope_spans:
            for span in scope.spans:
                yield Span(
                    span.name,
                    Context(span.trace_id.hex(), span.span_id.hex()),
                    span.parent_span_id.hex(),
                    [Context(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
                    _attributes(span.attributes),
                    span.status.code == span.status.STATUS_CODE_ERROR,
                    resource,
                )


def _attributes(pairs: Iterable[Any]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
