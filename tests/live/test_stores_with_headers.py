"""Stores that keep headers live: over restarts and restores, read by others, and when the format is switched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from pystreams import App, JoinWindows, Processor, Record, SessionWindows, Stores, TimeWindows, Windowed
from pystreams.record import NO_HEADERS
from pystreams.runtime.streams import Streams
from pystreams.state.formats import AggregationWithHeaders, ValueTimestampHeaders
from tests.live.support import TIMEOUT_S, Log, caught_up

PARTITIONS = 2
KEYS = [f"k{number}" for number in range(12)]
SETTINGS: dict[str, Any] = {"commit_interval_ms": 20, "window_changelog_retention_ms": -1}
HEADERS = (("h", b"1"), ("n", None))


def everything(log: Log, name: str, store_format: str) -> App:
    """Every kind of store that steps of the language have."""
    app = log.app(name, dsl_store_format=store_format, **SETTINGS)
    words = app.stream("words", key=str, value=str)
    grouped = words.group_by_key()
    grouped.count(name="counts").to_stream().to(f"{name}-counted")
    grouped.windowed_by(TimeWindows.tumbling(10)).count(name="by-window")
    grouped.windowed_by(SessionWindows.of(5)).count(name="by-session")
    rows = app.table("rows", key=str, value=str, name="rows")
    rows.join(
        app.table("owners", key=str, value=str, name="owners"),
        lambda row, owner: f"{row}/{owner}",
        foreign_key=lambda row: row[:2],
        value=str,
        name="owned",
    )
    pairs = words.left_join(
        words.map_values(str.upper), lambda one, two: f"{one}{two}", windows=JoinWindows.of(10), value=str
    )
    pairs.to(f"{name}-pairs")
    return app


def write(log: Log, topic: str, records: Sequence[tuple[str, str | None, int]]) -> None:
    with closing(log.broker.producer("with-headers", "with-headers")) as producer:
        for key, value, timestamp in records:
            data = None if value is None else value.encode()
            producer.send(topic, None, key.encode(), data, timestamp, HEADERS)
        producer.commit({}, None)


def feed(log: Log, start: int) -> None:
    write(log, "words", [(key, key * 2, start + number % 7) for number, key in enumerate(KEYS)])
    write(
        log,
        "rows",
        [(key, f"o{number % 3}", start) for number, key in enumerate(KEYS)] + [("k3", None, start)],
    )
    write(log, "owners", [(f"o{number}", f"owner{start}", start) for number in range(3)])


def content(streams: Streams) -> dict[str, list[Any]]:
    stores = ("counts", "rows", "owners", "owned")
    found = {name: streams.store(name).all() for name in stores}
    found |= {
        name: streams.store(name).query(lambda store: list(store.all()))
        for name in ("by-window", "by-session")
    }
    return {name: sorted(map(str, entries)) for name, entries in found.items()}


def run(log: Log, app: App) -> dict[str, list[Any]]:
    streams = log.start(app)
    caught_up(streams)
    found = content(streams)
    assert streams.close(1000 * TIMEOUT_S)
    return found


@pytest.mark.parametrize("wiped", [False, True], ids=["state kept", "state wiped"])
def test_the_format_may_change_between_runs(log: Log, wiped: bool) -> None:
    log.create("words", "rows", "owners", partitions=PARTITIONS)
    for name in ("one", "other"):
        log.create(f"{name}-counted", f"{name}-pairs", partitions=PARTITIONS)
    for number, store_format in enumerate(("headers", "default", "headers", "headers")):
        feed(log, 10 + 10 * number)
        found = run(log, everything(log, "one", store_format))
        assert found == run(log, everything(log, "other", "default"))
        if wiped:
            shutil.rmtree(log.path / "state" / "one")
    for topic in ("counted", "pairs"):
        assert log.read(f"one-{topic}", value=bytes) == log.read(f"other-{topic}", value=bytes)


class Keeps(Processor[str, str, str, str]):
    """Puts each record with its headers into three stores."""

    def process(self, record: Record[str, str]) -> None:
        store = self.context.store
        item = ValueTimestampHeaders(record.value, record.timestamp, record.headers)
        store("keys").put(record.key, item)
        store("windows").put(record.key, item, record.timestamp // 10 * 10)
        session = Windowed(record.key, record.timestamp, record.timestamp)
        store("sessions").put(session, AggregationWithHeaders(record.value, record.headers))


def keeping(log: Log, *, cached: bool, persistent: bool) -> App:
    app = log.app("keeps", **SETTINGS)
    common: dict[str, Any] = {"cached": cached, "persistent": persistent, "headers": True}
    stores = [
        Stores.timestamped_key_value_store("keys", str, str, **common),
        Stores.timestamped_window_store("windows", str, str, size=10, retention=1000, **common),
        Stores.session_store("sessions", str, str, retention=1000, **common),
    ]
    app.stream("words", key=str, value=str).process(Keeps, stores=stores)
    return app


def read_back(streams: Streams, *, headers: bool) -> Iterator[Any]:
    for key in ("k1", "k2"):
        yield streams.store("keys", headers=headers).get(key)
        yield streams.store("windows", headers=headers).fetch(key, 0, 100)
        yield streams.store("sessions", headers=headers).find_sessions(key, 0, 100)


@pytest.mark.parametrize(
    ("cached", "persistent", "wiped"),
    [(False, True, False), (True, True, True), (True, False, False)],
    ids=["on disk, kept", "on disk, wiped", "in memory"],
)
def test_what_a_processor_has_put_has_its_headers_after_a_restart(
    log: Log, cached: bool, persistent: bool, wiped: bool
) -> None:
    log.create("words", partitions=PARTITIONS)
    write(log, "words", [("k1", "one", 11), ("k2", "two", 22)])
    log.write("words", [("k2", "three", 33)], value=str)
    expected = [
        ("one", 11, HEADERS),
        [(10, ("one", 11, HEADERS))],
        [(("k1", 11, 11), ("one", HEADERS))],
        ("three", 33, NO_HEADERS),
        [(20, ("two", 22, HEADERS)), (30, ("three", 33, NO_HEADERS))],
        [(("k2", 22, 22), ("two", HEADERS)), (("k2", 33, 33), ("three", NO_HEADERS))],
    ]
    for _ in range(2):
        streams = log.start(keeping(log, cached=cached, persistent=persistent))
        caught_up(streams)
        assert list(read_back(streams, headers=True)) == expected
        assert list(read_back(streams, headers=False))[:3] == [
            ("one", 11),
            [(10, ("one", 11))],
            [(("k1", 11, 11), "one")],
        ]
        assert streams.close(1000 * TIMEOUT_S)
        if wiped:
            shutil.rmtree(log.path / "state", ignore_errors=True)
