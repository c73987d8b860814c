"""Random scenarios beyond the oracle's generator: its own with other stores, windows, functions, settings and records,
and with operators behind them."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from tests.conformance.extension import WINDOWS, Extension

Json = Any

#: Steps whose result may be kept in a key-value store.
_KEPT = frozenset(
    {"table", "to_table", "global_table", "filter", "filter_not", "map_values", "transform_values"}
)
_KEPT |= {"count", "reduce", "aggregate", "join", "left_join", "outer_join", "fk_join", "fk_left_join"}
_AGGREGATIONS = frozenset({"count", "reduce", "aggregate"})
_JOINS = frozenset({"join", "left_join", "outer_join"})

#: By op and field, what the oracle's generator has seldom or never.
_FUNCTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "filter": {"fn": ("false", "key_null", "starts:b", "gt:ab", "throw_if:ccc")},
    "filter_not": {"fn": ("value_null", "key_starts:a", "key_in:b,c", "true")},
    "map_values": {"fn": ("null", "const:", "field:1", "throw_if:cca", "key_append:z", "last:2")},
    "transform_values": {"fn": ("null", "null_if:a", "with_key", "value")},
    "select_key": {"fn": ("null", "keep", "field:1", "key_append:1", "const:")},
    "map": {"key_fn": ("null", "key", "keep"), "fn": ("null", "keep", "key")},
    "flat_map": {"fn": ("none", "dup:3", "split:|"), "key_fn": ("null", "key", "keep")},
    "flat_map_values": {"fn": ("none", "dup:1", "chars")},
    "group_by": {"key_fn": ("null", "keep", "value", "const:g", "null_if:ab"), "fn": ("null", "keep")},
    "reduce": {"fn": ("first", "null", "cat_null_if:b", "min"), "sub_fn": ("null", "first", "last")},
    "aggregate": {
        "fn": ("first", "null", "cat_null_if:b", "kcat:|"),
        "sub_fn": ("null", "first", "sub_len"),
        "init": (None, "0"),  # type: ignore[dict-item]
    },
    "join": {"fn": ("null", "null_if:a", "join_key:-", "right")},
    "left_join": {"fn": ("null", "null_if:null", "join_key:-", "right")},
    "outer_join": {"fn": ("null", "null_if:null", "left")},
    "fk_join": {"key_fn": ("null", "keep", "key_first:1", "value"), "fn": ("null", "right")},
    "fk_left_join": {"key_fn": ("null", "keep", "key_first:1", "value"), "fn": ("null", "null_if:null")},
    "to_stream": {"key_fn": ("null", "key_str", "value")},
}


def varied(scenario: Json, seed: str) -> Json:
    """Another valid scenario (or one that both refuse), the same for the same arguments."""
    return _Variation(copy.deepcopy(scenario), random.Random(f"varied {seed}")).made()


class _Variation:
    def __init__(self, scenario: Json, chance: random.Random) -> None:
        self._r = chance
        self._s = scenario
        self._n = 0

    def made(self) -> Json:
        extension = Extension(self._s, self._r)
        for _ in range(self._r.choice([0, 1, 1, 2, 3])):
            extension.add()
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._forgetful_store, 4),
            (self._versioned_store, 3),
            (self._other_store, 3),
            (self._bounds, 2),
            (self._windows, 3),
            (self._join_windows, 2),
            (self._grace, 1),
            (self._functions, 5),
            (self._optimization, 2),
            (self._small_cache, 2),
            (self._headers_in_stores, 2),
            (self._times, 2),
            (self._bad_values, 1),
            (self._errors_go_on, 1),
            (self._wall_clock, 1),
            (self._idle, 1),
            (self._pattern, 1),
            (self._topics_by_record, 1),
            (self._names_required, 1),
        ]
        methods, weights = zip(*kinds, strict=True)
        for method in self._r.choices(methods, weights, k=self._r.randint(1, 5)):
            method()
        for step in self._steps(
            "global_table", where=lambda s: "lru" in s.get("materialized", {}).get("type", "")
        ):
            # Behind a cache it differs on purpose.
            step["materialized"]["cached"] = False
        self._drive()
        return self._s

    # Steps

    def _steps(self, *ops: str, where: Callable[[Json], Any] = lambda step: True) -> list[Json]:
        return [step for step in self._s["steps"] if step["op"] in ops and where(step)]

    def _one(self, steps: list[Json]) -> Json:
        """One of them; an empty one, which nothing reads, if there is none."""
        return self._r.choice(steps) if steps else {}

    def _by_id(self, id: str) -> Json:
        return next((step for step in self._s["steps"] if step.get("id") == id), {})

    def _name(self) -> str:
        self._n += 1
        return f"V{self._n}"

    def _kept(self) -> list[Json]:
        """Steps that may have a key-value store of their own."""
        return self._steps(*_KEPT, where=lambda s: self._of_table(s) and not self._windowed(s))

    def _of_table(self, step: Json) -> bool:
        """Not what reads a stream, unless it makes a table of it."""
        if step["op"] in {"table", "to_table", "global_table", *_AGGREGATIONS}:
            return True
        source = self._by_id(step["from"])
        tables = _AGGREGATIONS | {"table", "to_table", "fk_join", "fk_left_join", "suppress"}
        if source.get("op") in tables or "materialized" in step or step["op"].startswith("fk_"):
            return True
        return source.get("op") in _KEPT and "from" in source and self._of_table(source)

    def _windowed(self, step: Json) -> bool:
        return bool(self._by_id(step.get("from", "")).get("op") == "windowed_by")

    # Stores

    def _forgetful_store(self) -> None:
        step = self._one(self._kept())
        store = self._store_of(step)
        store["type"] = f"lru:{self._r.choice([1, 1, 2, 3])}"
        store.pop("versioned", None)
        if self._r.random() < 0.5:
            store["cached"] = self._r.random() < 0.5

    def _versioned_store(self) -> None:
        store = self._store_of(self._one(self._kept()))
        store["versioned"] = {"history": self._r.choice([0, 3, 10, 40, 1000])}
        if self._r.random() < 0.3:
            store["versioned"]["segment"] = self._r.choice([1, 4, 30])
        for name in ("type", "cached"):
            store.pop(name, None)

    def _store_of(self, step: Json) -> Json:
        store: Json = step.setdefault("materialized", {})
        store.setdefault("store", self._name())
        return store

    def _other_store(self) -> None:
        for step in self._s["steps"]:
            store = step if step["op"] == "add_store" else step.get("materialized")
            if store and store.get("store") and self._r.random() < 0.5:
                field, value = self._r.choice(
                    [
                        ("cached", True),
                        ("cached", False),
                        ("logging", False),
                        ("persistent", False),
                        ("type", "in_memory"),
                        ("retention", 300),
                        ("retain_duplicates", True),
                    ]
                )
                if field in {"persistent", "retain_duplicates"} and step["op"] != "add_store":
                    continue
                if field == "cached" and store.get("type") == "versioned":
                    continue
                if field == "type" and ("versioned" in store or step["op"] == "add_store"):
                    continue
                if field == "retention" and step["op"] != "add_store" and not self._windowed(step):
                    continue
                store[field] = value

    def _small_cache(self) -> None:
        self._s["config"]["cache_max_bytes"] = self._r.choice([0, 60, 150, 300, 700, 2000])

    def _headers_in_stores(self) -> None:
        if self._steps("process", "process_values", where=lambda s: s["processor"] == "lookup"):
            # It shows such an entry as Java writes it.
            return
        self._s["config"]["store_format"] = "HEADERS"
        for number, entry in enumerate(self._piped()):
            if self._r.random() < 0.4:
                entry["headers"] = [["h", str(number)], ["i", self._r.choice(["", "x"])]][
                    : self._r.choice([1, 2])
                ]

    # Operators

    def _bounds(self) -> None:
        step = self._one(self._steps("suppress"))
        step |= self._r.choice(
            [{"max_records": 1}, {"max_records": 2}, {"max_bytes": 100}, {"max_bytes": 260}, {}]
        )
        if step.get("until") == "time_limit" and self._r.random() < 0.4:
            step["full"] = "shut_down"
        if self._r.random() < 0.3:
            step["wait"] = self._r.choice([0, 1, 2, 100])

    def _windows(self) -> None:
        step = self._one(self._steps("windowed_by"))
        step["windows"] = windows = self._r.choice(WINDOWS)
        of_cogroup = self._by_id(step.get("from", "")).get("op") == "cogroup"
        if not of_cogroup and self._r.random() < 0.6:
            step["emit"] = self._r.choice(["close", "close", "update"])
        for reader in self._steps("aggregate", where=lambda s: s["from"] == step.get("id")):
            reader.pop("merge_fn", None)
            if windows["type"] == "session":
                reader["merge_fn"] = "merge:/"

    def _join_windows(self) -> None:
        step = self._one(self._steps(*_JOINS, where=lambda s: "windows" in s))
        step["windows"] = self._r.choice(
            [
                {"diff": 0},
                {"diff": 0, "grace": 10},
                {"before": 0, "after": 5},
                {"before": 5, "after": 0, "grace": 2},
                {"diff": 3, "before": 10, "grace": 1},
                {"diff": 30, "grace": 100},
                {"before": 10, "after": -4},
                {"before": -2, "after": 8, "grace": 4},
            ]
        )
        step |= self._r.choice([{}, {"logging": False}, {"type": "in_memory"}, {"store": self._name()}])

    def _grace(self) -> None:
        tables = {
            s["id"] for s in self._steps("table", where=lambda s: "versioned" in s.get("materialized", {}))
        }
        step = self._one(self._steps("join", "left_join", where=lambda s: s["with"] in tables))
        if self._by_id(step.get("from", "")).get("op") not in {None, "table", "to_table"}:
            step["grace"] = self._r.choice([0, 2, 10])

    def _functions(self) -> None:
        for _ in range(self._r.randint(1, 3)):
            step = self._one(self._steps(*_FUNCTIONS))
            known = _FUNCTIONS.get(step.get("op", ""), {})
            fields = [name for name in known if name in step or name == "init"]
            if fields:
                field = self._r.choice(fields)
                step[field] = self._r.choice(known[field])

    def _optimization(self) -> None:
        parts = ["merge.repartition.topics", "reuse.ktable.source.topics", "single.store.self.join"]
        chosen = self._r.sample(parts, self._r.randint(1, 3))
        self._s["config"]["optimize"] = self._r.choice([True, ",".join(chosen), chosen[0]])

    def _topics_by_record(self) -> None:
        for step in self._steps("to", where=lambda s: "topic" in s):
            if self._r.random() < 0.3:
                prefix = step.pop("topic") + "-"
                step |= {"topic_fn": self._r.choice(["key", "first:1", "len"]), "topic_prefix": prefix}

    def _pattern(self) -> None:
        steps = self._s["steps"]
        topics = [topic for s in steps for topic in (*s.get("topics", ()), s.get("topic"))]
        for step in self._steps("stream", where=lambda s: len(s.get("topics", ())) == 1):
            [topic] = step["topics"]
            if topics.count(topic) == 1 and "value_type" not in step and self._r.random() < 0.5:
                del step["topics"]
                step["pattern"] = topic

    # Settings

    def _names_required(self) -> None:
        self._s["config"]["explicit_names"] = True

    def _times(self) -> None:
        config = self._s["config"]
        config["timestamp_extractor"] = self._r.choice(["log_and_skip", "partition_time", "value_ts", "fail"])
        read = [topic for s in self._s["steps"] for topic in s.get("topics", ())]
        for step in self._steps("stream", "table"):
            # Sources of one topic take its times alike.
            alone = all(read.count(topic) == 1 for topic in step.get("topics", ()))
            if alone and self._r.random() < 0.2:
                step["timestamp_extractor"] = self._r.choice(["value_ts", "partition_time", "log_and_skip"])
        invalid = 0.0 if config["timestamp_extractor"] == "fail" and self._r.random() < 0.8 else 0.1
        # Of global tables nobody asks for a time.
        everywhere = {step["topic"] for step in self._steps("global_table")}
        for entry in self._piped():
            if self._r.random() < invalid and entry["pipe"] not in everywhere:
                entry["ts"] = -1
            elif isinstance(entry.get("value"), str) and self._r.random() < 0.3:
                entry["value"] += f"@{self._r.choice([0, 5, 40, -7, 300])}"

    def _bad_values(self) -> None:
        numbers = {
            t for s in self._steps("stream") if s.get("value_type") == "int" for t in s.get("topics", ())
        }
        for entry in self._piped():
            if entry["pipe"] in numbers and self._r.random() < 0.2:
                entry.pop("value", None)
                entry["value_hex"] = self._r.choice(["", "01", "000102030405060708"])
        if self._r.random() < 0.8:
            self._s["config"]["deserialization_handler"] = "continue"

    def _errors_go_on(self) -> None:
        self._s["config"]["processing_handler"] = self._r.choice(["continue", "continue", "fail"])
        for step in self._steps("map_values", "filter", "process", "process_values"):
            if self._r.random() < 0.5 and not step.get("stores"):
                step["processor" if "processor" in step else "fn"] = f"throw_if:{self._r.choice('abc')}"

    def _wall_clock(self) -> None:
        self._s["config"]["start_wall_ms"] = self._r.choice([1, 7, 1_000])
        for _ in range(3):
            self._insert({"advance_wall_ms": self._r.choice([1, 5, 10, 50])})

    def _idle(self) -> None:
        self._s["config"]["max_task_idle_ms"] = self._r.choice([-1, -1, 5])
        self._wall_clock()

    # Records

    def _piped(self) -> list[Json]:
        return [entry for entry in self._s["drive"] if "pipe" in entry]

    def _insert(self, entry: Json) -> None:
        self._s["drive"].insert(self._r.randint(0, len(self._s["drive"])), entry)

    def _drive(self) -> None:
        """Records for the topics that were added, and some that are unusual."""
        drive, r = self._s["drive"], self._r
        fed = {entry["pipe"] for entry in self._piped()}
        wanted = {t for s in self._s["steps"] for t in s.get("topics", ())}
        wanted |= {s["topic"] for s in self._steps("table", "global_table")}
        for topic in sorted(wanted - fed):
            for _ in range(r.randint(3, 8)):
                value = None if r.random() < 0.12 else "".join(r.choices("abc|,", k=r.randint(1, 3)))
                at = r.randint(0, len(drive))
                near = drive[max(0, at - 1)].get("ts", 5) if drive else 5
                entry = {"pipe": topic, "key": r.choice("abc"), "value": value}
                drive.insert(at, {**entry, "ts": max(0, near + r.choice([0, 0, 1, 3, -6]))})
        piped = self._piped()
        for _ in range(r.choice([0, 0, 1, 2]) if piped else 0):
            self._insert({**r.choice(piped), **self._unusual()})
        named = [
            s["materialized"]["store"] for s in self._s["steps"] if s.get("materialized", {}).get("store")
        ]
        if named and r.random() < 0.3:
            self._insert({"dump": r.choice(named)})

    def _unusual(self) -> Json:
        r = self._r
        return r.choice(
            [
                {"ts": r.choice([0, 500, 5_000, 100_000, 90_000_000, 200_000_000])},
                {"key": ""},
                {"key": r.choice(["ab", "a" * 40, "b|c"])},
                {"headers": [["h", None], ["h", "twice"]]},
            ]
        )
