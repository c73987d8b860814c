"""Records with the context of a trace in their headers, and applications that are traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from pystreams.app import App
from pystreams.record import NO_HEADERS, Headers
from pystreams.runtime.streams import Streams
from pystreams.telemetry import Telemetry
from tests.live.support import Line, Log, eventually
from tests.telemetry.collector_kit import Context


def producer_span(number: int) -> Context:
    """The span of a producer that has written a record."""
    return Context(f"{number:032x}", f"{number:016x}")


def headers_of(context: Context, *, sampled: bool = True) -> Headers:
    traceparent = context.traceparent if sampled else context.traceparent[:-2] + b"00"
    return (("shop", b"north"), ("traceparent", traceparent))


def copying(log: Log, **settings: object) -> App:
    """An application that writes the records of ``in`` to ``out``."""
    app = log.app("copying", **settings)
    app.stream("in", key=str, value=int).to("out")
    return app


def write(log: Log, *records: tuple[str, Headers], topic: str = "in") -> None:
    """Write records with the value 1, each with its key and headers."""
    with closing(log.broker.producer("test", "test")) as producer:
        for key, headers in records:
            producer.send(topic, None, key.encode(), (1).to_bytes(8), 1, headers)
        producer.commit({}, None)


def run(log: Log, app: App) -> None:
    """Run an application that is traced, until it has caught up."""
    streams = Streams(app, broker=log.broker)
    with Telemetry(streams):
        streams.run(until_caught_up=True)


def run_at_full_speed(log: Log, app: App, *batch: tuple[str, Headers]) -> None:
    """Let an application that is traced process a batch in one round: the first rounds of a thread are shorter."""
    warm_up = [("warm-up", NO_HEADERS)] * 1000
    streams = Streams(app, broker=log.broker)
    with Telemetry(streams):
        streams.start()
        for written in (warm_up, batch):
            before = len(records(log, "out"))
            write(log, *written)
            eventually(lambda: len(records(log, "out")) == before + len(written))  # noqa: B023
        streams.close()


def records(log: Log, topic: str) -> list[Line]:
    return [line for partition in log.partitions(topic) for line in log.lines(partition).values()]


def contexts(lines: list[Line]) -> Iterator[Context | None]:
    """The span that each record carries."""
    for line in lines:
        found = [value for name, value in line.headers if name == "traceparent"]
        assert len(found) <= 1
        if found:
            assert found[0] is not None
            _, trace, span, _ = found[0].decode().split("-")
            yield Context(trace, span)
        else:
            yield None
