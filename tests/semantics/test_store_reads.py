"""What a processor reads from its stores, in whatever way and through whatever cache, is what Kafka Streams gives.

``java/store_reads.json`` has random reads and writes of every kind of store, with what Kafka Streams 4.3.1 gave and
logged for each record. Left out is what differs on purpose (docs/differences.md).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pystreams import Processor, Record, Stores, Topology, TopologyTestDriver, Windowed
from pystreams.state.spec import StoreSpec

Json = Any
CASES: list[Json] = json.loads(
    (Path(__file__).parent / "java" / "store_reads.json").read_text(encoding="utf-8")
)


def title(case: Json) -> str:
    where = "on disk" if case["persistent"] else "in memory"
    duplicates = ", duplicates" if case.get("retain_duplicates") else ""
    cache = f"cache of {case['cache']}" if case["cached"] else "no cache"
    return f"{case['kind']} {where}{duplicates}, {cache}"


def spec_of(case: Json) -> StoreSpec:
    common = {"persistent": case["persistent"], "cached": case["cached"]}
    windows = {name: case[name] for name in ("size", "retention", "retain_duplicates") if name in case}
    match case["kind"]:
        case "key_value":
            return Stores.key_value_store("s", str, str, **common)
        case "timestamped_key_value":
            return Stores.timestamped_key_value_store("s", str, str, **common)
        case "lru":
            return Stores.lru_map("s", str, str, max_entries=case["max"], cached=case["cached"])
        case "window":
            return Stores.window_store("s", str, str, **windows, **common)
        case "timestamped_window":
            return Stores.timestamped_window_store("s", str, str, **windows, **common)
        case "session":
            return Stores.session_store("s", str, str, retention=case["retention"], **common)
        case _:
            return Stores.versioned_store("s", str, str, history=case["retention"])


def shown(value: Any) -> str:
    if value is None:
        return "null"
    return f"{value[0]}@{value[1]}" if isinstance(value, tuple) else str(value)


def shown_key(key: Any) -> str:
    return f"{key.key}@{key.start}/{key.end}" if isinstance(key, Windowed) else str(key)


def walked(entries: Any, most: int) -> Iterator[str]:
    """The first entries of an iterator; before the second one its key is looked at."""
    with entries:
        for number, (key, value) in enumerate(islice(entries, most)):
            yield f"{shown_key(key)}={shown(value)},"
            if number == 0 and most > 1 and (following := entries.peek_key()) is not None:
                yield f"^{shown_key(following)} "


#: The arguments of reads, by names of the record; ``n`` is how many entries are taken of what they give.
_READS = {
    "get": "k", "get_as_of": "ka", "count": "", "fetch_one": "ka", "fetch_session": "kab", "range": "ft",
    "reverse_range": "ft", "all": "", "reverse_all": "", "prefix_scan": "f", "fetch": "kab", "backward_fetch": "kab",
    "fetch_range": "ftab", "backward_fetch_range": "ftab", "fetch_all": "ab", "backward_fetch_all": "ab",
    "backward_all": "", "find_sessions": "kab", "backward_find_sessions": "kab", "find_sessions_range": "ftab",
    "backward_find_sessions_range": "ftab",
}  # fmt: skip
_NAMES = {"get_as_of": "get", "count": "approximate_count", "fetch_one": "fetch"}


def read(store: Any, op: Json) -> str:
    names = _READS[op["op"]]
    # A session store fetches by key alone.
    given = [op[name] for name in names if name in op and not (_by_key(store, op) and name in "ab")]
    name: str = op["op"]
    found = getattr(store, _NAMES.get(name, name))(*given)
    return "".join(walked(found, op["n"])) if "n" in op else shown(found)


def _by_key(store: Any, op: Json) -> bool:
    return bool(store.spec.kind == "session" and op["op"].endswith(("fetch", "fetch_range")))


def value_of(op: Json) -> Any:
    return (op["v"], op["ts"]) if op.get("v") is not None and "ts" in op else op.get("v")


def done(store: Any, op: Json) -> str:
    kind, key = store.spec.kind, op.get("k")
    match op["op"]:
        case "put" if kind.endswith("window"):
            store.put(key, value_of(op), op["a"])
        case "put" if kind == "session":
            store.put(Windowed(key, op["a"], op["b"]), op["v"])
        case "put" if kind == "versioned":
            return str(store.put(key, op["v"], op["a"]))
        case "put":
            store.put(key, value_of(op))
        case "put_all":
            store.put_all([(entry["k"], value_of(_fitting(store, entry))) for entry in op["entries"]])
        case "put_if_absent":
            return shown(store.put_if_absent(key, value_of(op)))
        case "remove":
            store.remove(Windowed(key, op["a"], op["b"]))
        case "delete":
            return shown(store.delete(key, op["a"]) if kind == "versioned" else store.delete(key))
        case _:
            return read(store, op)
    return ""


def _fitting(store: Any, entry: Json) -> Json:
    if store.spec.kind.startswith("timestamped"):
        return entry
    return {name: value for name, value in entry.items() if name != "ts"}


def play(case: Json, spec: StoreSpec, check: Callable[[Any, Json], None]) -> None:
    """Have a processor call ``check`` with its store for each operation of a case; what is logged is compared."""
    batches = case["batches"]

    class Uses(Processor[str, int, str, str]):
        def process(self, record: Record[str, int]) -> None:
            for op in batches[record.value]["ops"]:
                check(self.context.store("s"), op)

    topology = Topology().add_source("in", "in", key=str, value=int)
    topology.add_processor("uses", Uses, "in", stores=[spec])
    settings = {"application_id": "t", "statestore_cache_max_bytes": case["cache"]}
    with TopologyTestDriver(topology, settings) as driver:
        source = driver.create_input_topic("in", key=str, value=int)
        for number, batch in enumerate(batches):
            source.pipe_input("r", number, timestamp=batch["ts"])
            logged = driver.read_raw("t-s-changelog") if "t-s-changelog" in driver.produced_topics else []
            told = [
                f"{(one.key or b'').hex()} {'null' if one.value is None else one.value.hex()} {one.timestamp}"
                for one in logged
            ]
            assert told == batch["logs"], batch


@pytest.mark.parametrize("case", CASES, ids=title)
def test_reads_give_and_log_what_javas_do(case: Json) -> None:
    def check(store: Any, op: Json) -> None:
        assert done(store, op) == op["gives"], op

    play(case, spec_of(case), check)
