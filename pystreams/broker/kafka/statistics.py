"""librdkafka's statistics as metrics, under the names that Java's clients give them.

librdkafka reports once in an interval, as JSON, to a callback that the thread of the client runs in its polls. Only the
last report of each client is kept. Source: librdkafka's STATISTICS.md; org.apache.kafka.clients.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from pystreams.clock import SystemClock
from pystreams.metrics import Sample, Tags, names

log = logging.getLogger(__name__)

_US_PER_MS: Final = 1_000
#: A client that has missed this number of reports is regarded as closed, or does not poll.
_REPORTS_KEPT: Final = 6


class _Window(msgspec.Struct, frozen=True):
    """The measurements since the last report. If there were none, ``cnt`` is 0."""

    avg: int = 0
    max: int = 0
    cnt: int = 0


class _Node(msgspec.Struct, frozen=True):
    """A broker. ``nodeid`` is -1 for one that is only known by its address; times are in µs, ``throttle`` in ms."""

    nodeid: int
    source: str = ""
    state: str = ""
    waitresp_cnt: int = 0
    tx: int = 0
    txbytes: int = 0
    txerrs: int = 0
    txretries: int = 0
    req_timeouts: int = 0
    rx: int = 0
    rxbytes: int = 0
    connects: int = 0
    int_latency: _Window = _Window()
    rtt: _Window = _Window()
    throttle: _Window = _Window()


class _Partition(msgspec.Struct, frozen=True):
    txmsgs: int = 0
    txbytes: int = 0


class _Topic(msgspec.Struct, frozen=True):
    batchsize: _Window = _Window()
    partitions: dict[str, _Partition] = {}


class _Report(msgspec.Struct, frozen=True):
    type: str
    msg_size: int = 0
    msg_size_max: int = 0
    tx: int = 0
    tx_bytes: int = 0
    rx: int = 0
    rx_bytes: int = 0
    txmsgs: int = 0
    rxmsgs: int = 0
    rxmsg_bytes: int = 0
    brokers: dict[str, _Node] = {}
    topics: dict[str, _Topic] = {}


_decode = msgspec.json.Decoder(_Report).decode


class ClientStatistics:
    """The last reports of all clients of a broker. Clients report from their threads, any thread may read them."""

    def __init__(self, interval_ms: int) -> None:
        """``interval_ms``: how often clients report; 0: never."""
        self._interval_ms = interval_ms
        self._clock = SystemClock()
        #: With the times at which they came (monotonic).
        self._reports: dict[str, tuple[float, _Report]] = {}

    def settings(self, client_id: str) -> Mapping[str, Any]:
        """The settings with which a client reports."""
        if not self._interval_ms:
            return {}
        return {"statistics.interval.ms": self._interval_ms, "stats_cb": self._taker(client_id)}

    def samples(self) -> list[Sample]:
        """The metrics of all clients, without those that have not reported for a while, because they are closed."""
        since_ms = self._clock.monotonic_ms() - _REPORTS_KEPT * self._interval_ms
        return [
            sample
            for client, (came_ms, report) in list(self._reports.items())
            if came_ms >= since_ms
            for sample in _samples(client, report)
        ]

    def _taker(self, client_id: str) -> Callable[[str], None]:
        def take(text: str) -> None:
            try:
                self._reports[client_id] = self._clock.monotonic_ms(), _decode(text)
            except msgspec.DecodeError:
                log.warning("the statistics of %s cannot be read", client_id, exc_info=True)

        return take


def _samples(client_id: str, report: _Report) -> Iterator[Sample]:
    tags: Tags = (("client_id", client_id),)
    nodes = list(report.brokers.values())
    yield Sample(names.CONNECTIONS, tags, sum(node.state == "UP" for node in nodes))
    yield _count(names.CONNECTIONS_MADE, tags, sum(node.connects for node in nodes))
    yield from _traffic(tags, report.tx, report.tx_bytes, report.rx, report.rx_bytes)
    yield Sample(names.REQUESTS_IN_FLIGHT, tags, sum(node.waitresp_cnt for node in nodes))
    yield _count(names.REQUEST_RETRIES, tags, sum(node.txretries for node in nodes))
    yield _count(names.REQUEST_ERRORS, tags, sum(node.txerrs for node in nodes))
    yield _count(names.REQUEST_TIMEOUTS, tags, sum(node.req_timeouts for node in nodes))
    throttle = names.PRODUCE_THROTTLE if report.type == "producer" else names.FETCH_THROTTLE
    yield from _window(throttle, tags, [node.throttle for node in nodes])
    if report.type == "producer":
        yield from _of_producer(client_id, report, nodes)
    else:
        yield _count(names.RECORDS_CONSUMED, tags, report.rxmsgs)
        yield _count(names.BYTES_CONSUMED, tags, report.rxmsg_bytes)
    for node in nodes:
        if node.nodeid >= 0:
            of_node = (*tags, ("node_id", f"node-{node.nodeid}"))
            yield from _traffic(of_node, node.tx, node.txbytes, node.rx, node.rxbytes)
            yield from _window(names.REQUEST_LATENCY, of_node, [node.rtt], _US_PER_MS)


def _of_producer(client_id: str, report: _Report, nodes: Collection[_Node]) -> Iterator[Sample]:
    tags: Tags = (("client_id", client_id),)
    yield _count(names.RECORDS_SENT, tags, report.txmsgs)
    yield Sample(names.BUFFER_TOTAL, tags, report.msg_size_max)
    yield Sample(names.BUFFER_AVAILABLE, tags, report.msg_size_max - report.msg_size)
    yield from _window(names.REQUEST_LATENCY, tags, [node.rtt for node in nodes], _US_PER_MS)
    yield from _window(names.RECORD_QUEUE_TIME, tags, [node.int_latency for node in nodes], _US_PER_MS)
    yield from _window(names.BATCH_SIZE, tags, [topic.batchsize for topic in report.topics.values()])
    for name, topic in report.topics.items():
        of_topic = (*tags, ("topic", name))
        partitions = topic.partitions.values()
        yield _count(names.RECORDS_SENT, of_topic, sum(partition.txmsgs for partition in partitions))
        yield _count(names.BYTES_SENT, of_topic, sum(partition.txbytes for partition in partitions))


def _traffic(
    tags: Tags, requests: int, request_bytes: int, responses: int, bytes_in: int
) -> Iterator[Sample]:
    yield _count(names.REQUESTS, tags, requests)
    yield _count(names.BYTES_OUT, tags, request_bytes)
    yield _count(names.RESPONSES, tags, responses)
    yield _count(names.BYTES_IN, tags, bytes_in)


def _window(name: str, tags: Tags, windows: Collection[_Window], per_unit: int = 1) -> Iterator[Sample]:
    """Average and maximum; no samples if there were no measurements."""
    number = sum(window.cnt for window in windows)
    if number:
        total = sum(window.avg * window.cnt for window in windows)
        yield Sample(f"{name}-avg", tags, total / number / per_unit)
        yield Sample(f"{name}-max", tags, max(window.max for window in windows) / per_unit)


def _count(name: str, tags: Tags, value: int) -> Sample:
    return Sample(name, tags, value, counts=True)
