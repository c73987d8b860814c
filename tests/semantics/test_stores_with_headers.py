"""Stores with headers, as a processor reads and writes them, are Kafka Streams' ones, reads and changelogs alike.

``stores_with_headers.txt`` is what Kafka Streams 4.3.1 does in the same program: for each store and record the values
that the processor is given, then what is logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pystreams import Processor, Record, Stores, Topology, TopologyTestDriver, Windowed
from pystreams.record import Headers
from pystreams.state.formats import AggregationWithHeaders, ValueTimestampHeaders
from pystreams.state.spec import StoreSpec

#: Key, value, timestamp, name and value of a header.
RECORDS: list[tuple[str, str, int, str, bytes | None]] = [
    ("a", "1", 10, "h", b"1"),
    ("a", "2", 20, "k", None),
    ("b", "3", 15, "h", b"2"),
    ("a", "del", 30, "d", b"x"),
    ("b", "4", 25, "z", b"9"),
    ("b", "absent", 26, "q", b"7"),
    ("c", "del", 40, "w", b"5"),
]

Use = Callable[[Any, Record[str, str]], Iterator[str]]


def shown(found: Any) -> str:
    if found is None:
        return "null"
    if isinstance(found, AggregationWithHeaders):
        return f"{found.aggregation}{of_headers(found.headers)}"
    return f"{found.value}@{found.timestamp}{of_headers(found.headers)}"


def of_headers(headers: Headers) -> str:
    told = ((name, "null" if value is None else value.decode()) for name, value in headers)
    return "[" + "".join(f"{name}={value} " for name, value in told) + "]"


def use_key_value(store: Any, record: Record[str, str]) -> Iterator[str]:
    item = ValueTimestampHeaders(record.value, record.timestamp, record.headers)
    if record.value == "del":
        yield shown(store.delete(record.key))
    elif record.value == "absent":
        yield shown(store.put_if_absent(record.key, item))
    else:
        store.put(record.key, item)
    yield shown(store.get(record.key))
    yield from (f"{key}:{shown(value)}" for key, value in store.all())


def use_windows(store: Any, record: Record[str, str]) -> Iterator[str]:
    if record.value == "del":
        store.put(record.key, None, 20)
    else:
        item = ValueTimestampHeaders(record.value, record.timestamp, record.headers)
        store.put(record.key, item, record.timestamp)
    yield shown(store.fetch(record.key, record.timestamp))
    yield from (f"{start}:{shown(value)}" for start, value in store.fetch(record.key, 0, 100))
    yield from (f"{w.key}{w.start}-{w.end}:{shown(value)}" for w, value in store.all())


def use_sessions(store: Any, record: Record[str, str]) -> Iterator[str]:
    if record.value == "del":
        store.remove(Windowed(record.key, 5, 20))
    elif record.value == "absent":
        store.put(Windowed(record.key, 5, 15), None)
    else:
        session = Windowed(record.key, 5, record.timestamp)
        store.put(session, AggregationWithHeaders(record.value, record.headers))
    yield shown(store.fetch_session(record.key, 5, record.timestamp))
    found = store.find_sessions(record.key, 0, 100)
    yield from (f"{session.start}-{session.end}:{shown(value)}" for session, value in found)


def of_kind(kind: str, persistent: bool, cached: bool) -> tuple[StoreSpec, Use]:
    common: dict[str, Any] = {"persistent": persistent, "cached": cached, "headers": True}
    if kind == "kv":
        return Stores.timestamped_key_value_store("s", str, str, **common), use_key_value
    if kind == "window":
        return Stores.timestamped_window_store("s", str, str, size=10, retention=1000, **common), use_windows
    return Stores.session_store("s", str, str, retention=1000, **common), use_sessions


def told(kind: str, persistent: bool, cached: bool) -> list[str]:
    """What happens, in the words of the file."""
    spec, use = of_kind(kind, persistent, cached)

    class Using(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            text = ";".join(use(self.context.store("s"), record))
            self.context.forward(record.with_value(text))

    topology = Topology().add_source("in", "in", key=str, value=str)
    topology.add_processor("p", Using, "in", stores=[spec])
    topology.add_sink("out", "out", "p", key=str, value=str)
    lines = []
    with TopologyTestDriver(topology, {"application_id": "t"}) as driver:
        source = driver.create_input_topic("in", key=str, value=str)
        out = driver.create_output_topic("out", key=str, value=str)
        for key, value, timestamp, name, header in RECORDS:
            source.pipe_input(key, value, timestamp=timestamp, headers=((name, header),))
            lines += [f"{key} {value} -> {text}" for text in out.read_values()]
            for one in driver.read_raw("t-s-changelog"):
                assert one.key is not None
                logged = "null" if one.value is None else one.value.decode()
                lines.append(f"   log {one.key.hex()} {logged} {one.timestamp} {of_headers(one.headers)}")
    return lines


def recorded() -> dict[str, list[str]]:
    text = Path(__file__).with_name("stores_with_headers.txt").read_text(encoding="utf-8")
    parts = (part.splitlines() for part in text.split("== ")[1:])
    return {title: lines for title, *lines in parts}


@pytest.mark.parametrize("title", recorded())
def test_a_store_with_headers_does_what_javas_does(title: str) -> None:
    kind, place, *cached = title.split()
    assert told(kind, place == "disk", bool(cached)) == recorded()[title]
