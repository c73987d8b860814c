"""Shows the results of a topology for a few records, in notebooks, experiments and documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from pystreams.broker.port import check_headers
from pystreams.config import StreamsConfig
from pystreams.dsl.builder import StreamsBuilder, build_topology
from pystreams.errors import TopicError
from pystreams.record import Headers
from pystreams.serde.base import AnySerde
from pystreams.serde.content import writing
from pystreams.testing.driver import TopologyTestDriver
from pystreams.testing.producer import ProducedRecord
from pystreams.times import Time, to_ms
from pystreams.topology.built import BuiltTopology
from pystreams.topology.nodes import SinkNode, SourceNode
from pystreams.topology.topology import Topology
from pystreams.windowed import Windowed

#: (topic, key, value, timestamp), or (topic, key, value, timestamp, headers).
Piped: TypeAlias = "tuple[str, Any, Any, Time] | tuple[str, Any, Any, Time, Headers]"


def play(
    topology: Topology | StreamsBuilder,
    *steps: Piped | timedelta,
    config: StreamsConfig | Mapping[str, Any] | None = None,
) -> str:
    """Show the results as a table. Below each input record are the output records that it causes, indented, topic by
    topic, each with key, value, timestamp (after ``@``, in ms) and headers, and the number of dropped records.

    A step is a record, (topic, key, value, timestamp) or (topic, key, value, timestamp, headers), or a timedelta, by
    which the wall clock advances. A timestamp is milliseconds since 1970, or a datetime. Types are those of the sources
    and sinks; internal topics are not shown. For example::

        print(play(app, ("lines", None, "to be or not to be", 0)))

    Each call begins with empty stores. Raises ``TopicError`` for a topic that no source reads.
    """
    rows: list[tuple[str, ...]] = []
    with TopologyTestDriver(topology, config, initial_wall_clock=0) as driver:
        topics = _Topics(topology, driver.config)
        wall_clock_ms = 0
        for step in steps:
            dropped = driver.dropped_records
            if isinstance(step, timedelta):
                wall_clock_ms += step // timedelta(milliseconds=1)
                rows.append((f"(wall clock: {wall_clock_ms})",))
                driver.advance_wall_clock_time(step)
            else:
                topic, key, value, timestamp, headers = _record(step)
                rows.append(_row(topic, key, value, timestamp, headers))
                key_bytes, value_bytes = topics.written(topic, key, value)
                check_headers(topic, headers)
                driver.pipe_bytes(topic, key_bytes, value_bytes, timestamp, headers)
            rows += (
                _row(f"  {r.topic}", *rest) for r in topics.produced(driver) for rest in (topics.read(r),)
            )
            if dropped != driver.dropped_records:
                rows.append((f"  ({driver.dropped_records - dropped} dropped)",))
    return "\n".join(_aligned(rows))


class _Topics:
    """The types of an application's topics."""

    def __init__(self, topology: Topology | StreamsBuilder, config: StreamsConfig) -> None:
        built = build_topology(topology, config)
        nodes = [node for sub in built.subtopologies for node in sub.nodes]
        self._built = built
        self._sinks = [node for node in nodes if isinstance(node, SinkNode)]

    def written(self, topic: str, key: Any, value: Any) -> tuple[bytes | None, bytes | None]:
        """Serialize key and value."""
        source = _source(self._built, topic)
        if source is None:
            raise TopicError(f"no source reads topic {topic!r}")
        key_bytes = writing(_known(source.key_serde), topic, "key")(key)
        return key_bytes, writing(_known(source.value_serde), topic, "value")(value)

    def produced(self, driver: TopologyTestDriver) -> Iterator[ProducedRecord]:
        """The new output records, except those of internal topics."""
        changelogs = {topic for sub in self._built.subtopologies for topic in sub.changelogs.values()}
        for topic in sorted(driver.produced_topics - changelogs - self._built.internal_topics.keys()):
            yield from driver.read_raw(topic)

    def read(self, record: ProducedRecord) -> tuple[Any, Any, int | None, Headers]:
        """Key, value, timestamp and headers."""
        _, _, key, value, timestamp, headers = record
        sink = next((node for node in self._sinks if node.topic in (record.topic, None)), None)
        if sink is None:  # The dead-letter topic has input records.
            return key, value, timestamp, headers
        key_serde, value_serde = _known(sink.key_serde), _known(sink.value_serde)
        return (
            None if key is None else key_serde.deserializer(record.topic)(key),
            None if value is None else value_serde.deserializer(record.topic)(value),
            timestamp,
            headers,
        )


def _record(step: object) -> tuple[str, Any, Any, int, Headers]:
    if not isinstance(step, tuple) or not 4 <= len(step) <= 5:
        raise TypeError(
            f"a step is (topic, key, value, timestamp), with headers or not, or a timedelta, not {step!r}"
        )
    topic, key, value, timestamp, *headers = step
    return topic, key, value, to_ms(timestamp), headers[0] if headers else ()


def _source(built: BuiltTopology, topic: str) -> SourceNode | None:
    found = next((store.source for store in built.global_stores if store.topic == topic), None)
    return found or next((node for sub in built.subtopologies if (node := sub.source_for(topic))), None)


def _known(serde: AnySerde | None) -> AnySerde:
    assert serde is not None, "a topology that is built knows all serdes"
    return serde


def _row(topic: str, key: Any, value: Any, timestamp: int | None, headers: Headers = ()) -> tuple[str, ...]:
    shown = tuple(f"{name}={_text(content)}" for name, content in headers)
    return (topic, _text(key), _text(value), f"@{timestamp}", *((", ".join(shown),) if shown else ()))


def _text(content: Any) -> str:
    if isinstance(content, str) and content and content.strip() == content:
        return content
    if isinstance(content, Windowed):
        return str(content)
    return repr(content)


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    """Align the rows in columns. A row of one cell is a remark, whose length does not count."""
    columns = [row for row in rows if len(row) > 1]
    widths = [max(len(row[at]) for row in columns) for at in range(3)] if columns else []
    for row in rows:
        if len(row) == 1:
            yield row[0]
            continue
        padded = (cell.ljust(width) for cell, width in zip(row, (*widths, 0, 0), strict=False))
        yield "  ".join(padded).rstrip()
