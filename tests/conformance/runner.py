"""Runs one scenario through pystreams' test driver and tells what happened, in the oracle's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pystreams.serde.join_side import SideValue, WaitingKey
from pystreams.state.formats import TIMESTAMP_BYTES, AggregationWithHeaders
from pystreams.state.stores.buffer_value import unpacked
from pystreams.state.stores.change_buffer import ChangeBuffer
from pystreams.state.stores.join_buffer import JoinBuffer
from pystreams.state.stores.versioned import VersionedStore
from pystreams.testing import ProducedRecord, TopologyTestDriver
from pystreams.windowed import Windowed
from tests.conformance.builder import ScenarioBuilder
from tests.conformance.processors import read_all
from tests.conformance.scenarios import config_of, line_of
from tests.conformance.types import TEXT, show_bytes, show_headers, show_key, show_value
from tests.conformance.vocabulary import ScenarioError

Json = Any


def run(scenario: Json) -> Json:
    """The result of a scenario."""
    return _Run(scenario).result()


class _Run:
    def __init__(self, scenario: Json) -> None:
        self.scenario = scenario
        self.phase = "config"
        self.at = -1
        self.outputs: dict[str, list[Json]] = {}
        self.internal: dict[str, list[Json]] = {}
        self.dumps: list[Json] = []
        self.builder = ScenarioBuilder(scenario["config"])
        drive = scenario["drive"]
        #: Of versioned stores, which are asked key by key.
        self.keys = {str(e["key"]) for e in drive if "pipe" in e and e.get("key") is not None}
        self.found: Json = {"name": scenario["name"]}

    def result(self) -> Json:
        error = None
        try:
            self.drive()
        except Exception as raised:  # noqa: BLE001 - every failure is a result
            error = raised
        found = self.found
        found["outputs"] = {topic: self.outputs.get(topic, []) for topic in sorted(self.builder.sinks)}
        found["internal"] = dict(sorted(self.internal.items()))
        if self.dumps:
            found["dumps"] = self.dumps
        found["error"] = None if error is None else self.failure(error)
        return found

    def drive(self) -> None:
        config = config_of(self.scenario["config"])
        self.phase = "build"
        topology = self.builder.build(self.scenario["steps"])
        self.found["describe"] = topology.describe()
        self.phase = "init"
        start = self.scenario["config"].get("start_wall_ms", 0)
        with TopologyTestDriver(topology, config, initial_wall_clock=start) as driver:
            self.drain(driver)
            self.phase = "drive"
            try:
                for at, entry in enumerate(self.scenario["drive"]):
                    self.at = at
                    self.one(driver, entry)
                    self.drain(driver)
            except Exception:
                self.drain(driver)
                raise
            self.phase = "dump"
            self.found["stores"] = {
                name: dump(driver.store(name), self.keys) for name in sorted(driver.store_names)
            }
            has_task = any(step["op"] in ("stream", "table") for step in self.scenario["steps"])
            self.found["stream_time"] = driver.stream_time if has_task else None
            self.found["metrics"] = {"dropped": driver.dropped_records}
            self.phase = "close"

    def one(self, driver: TopologyTestDriver, entry: Json) -> None:
        if "pipe" in entry:
            driver.pipe_bytes(entry["pipe"], *line_of(entry))
        elif "advance_wall_ms" in entry:
            driver.advance_wall_clock_time(entry["advance_wall_ms"])
        elif "dump" in entry:
            name = entry["dump"]
            content = dump(driver.store(name), self.keys) if name in driver.store_names else None
            self.dumps.append({"at": self.at, "store": name, "content": content})
        else:
            raise ScenarioError(f"unknown drive step: {entry}")

    def drain(self, driver: TopologyTestDriver) -> None:
        """Take what was produced since the last drive entry."""
        for topic in sorted(driver.produced_topics):
            target = self.outputs if topic in self.builder.sinks else self.internal
            shown = [self.shown(record) for record in driver.read_raw(topic)]
            if shown:
                target.setdefault(topic, []).extend(shown)

    def shown(self, record: ProducedRecord) -> Json:
        out: Json = {"at": self.at}
        if record.topic in self.builder.sinks:
            key_type, serde = self.builder.sinks[record.topic]
            out["key"] = show_key(_read(key_type.serde, record.key))
            out["value"] = show_value(_read(serde, record.value))
        else:
            out["key"] = show_bytes(record.key)
            out["value"] = show_bytes(record.value)
            self.keys.update([] if record.key is None else [record.key.decode(errors="replace")])
            out["key_hex"] = None if record.key is None else record.key.hex()
            out["value_hex"] = None if record.value is None else record.value.hex()
        out["ts"] = record.timestamp
        out["headers"] = show_headers(record.headers)
        return out

    def failure(self, error: BaseException) -> Json:
        return {
            "phase": self.phase,
            "at": self.at,
            "class": f"{type(error).__module__}.{type(error).__qualname__}",
            "message": str(error),
            "causes": [
                {"class": type(cause).__qualname__, "message": str(cause)}
                for cause in _causes(error.__cause__)
            ],
        }


def dump(store: Any, keys: Iterable[str]) -> Json:
    """A store's content, sorted by key."""
    if isinstance(store, ChangeBuffer):
        first = store.first_time if len(store) else None
        return {"type": "buffer", "records": len(store), "bytes": store.size_bytes, "min_ts": first}
    if isinstance(store, JoinBuffer):
        # A change that is held back has the time beside its key; here it is part of the place.
        sizes = [
            unpacked(packed).size_bytes(place) - TIMESTAMP_BYTES
            for place, packed, _ in store.logged()
            if packed
        ]
        first = store.time.ms - store.spec.retention_ms + 1 if sizes else None
        return {"type": "buffer", "records": len(sizes), "bytes": sum(sizes), "min_ts": first}
    if isinstance(store, VersionedStore):
        if store.spec.key_serde is not TEXT:
            return {"type": "versioned", "error": "its keys are not text"}
        return {
            "type": "versioned",
            "entries": [entry for key in sorted(keys) for entry in _versions(store, key)],
        }
    kind = "window" if hasattr(store, "fetch_all") else "key_value"
    if store.spec.kind == "session":
        kind = "session"
    entries = []
    for key, value in read_all(store.all()):
        entry = {"key": show_key(key)}
        if isinstance(value, SideValue):
            entry["value"] = {_side(value.left): show_value(value.value)}
        elif isinstance(value, AggregationWithHeaders):
            entry["value"] = show_value(value.aggregation)
        elif isinstance(value, tuple):
            entry["value"], entry["ts"] = show_value(value[0]), value[1]
        else:
            entry["value"] = show_value(value)
        if store.spec.headers and value.headers:
            entry["headers"] = show_headers(value.headers)
        entries.append((_sort_key(key), entry))
    entries.sort(key=lambda pair: pair[0])
    return {"type": kind, "entries": [entry for _, entry in entries]}


def _versions(store: Any, key: str) -> list[Json]:
    return [
        {"key": key, "value": show_value(found.value), "ts": found.timestamp, "valid_to": found.valid_to}
        for found in store.versions(key)
    ]


def _side(left: bool) -> str:
    return "left" if left else "right"


def _sort_key(key: Any) -> tuple[str, int, int]:
    if isinstance(key, WaitingKey):
        return (_sort_key(key.key)[0], key.timestamp, int(not key.left))
    if isinstance(key, Windowed):
        return (_sort_key(key.key)[0], key.start, key.end)
    return (str(show_key(key)), 0, 0)


def _read(serde: Any, data: bytes | None) -> Any:
    return None if data is None else serde.deserializer("x")(data)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
