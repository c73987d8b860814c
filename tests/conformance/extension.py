"""Operators behind a random scenario's own: those that the oracle's generator has seldom or never."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from tests.conformance.builder import ScenarioBuilder

Json = Any


class Known(NamedTuple):
    """What a step gives."""

    id: str
    #: As the builder names it: "stream", "table", "gstream", "global", ...
    kind: str
    #: "str", "time" or "session"
    key: str
    value: str


def known(scenario: Json) -> list[Known]:
    """The results of a scenario's steps, in their order; none if it is refused."""
    builder = ScenarioBuilder(scenario["config"])
    try:
        builder.build(scenario["steps"])
    except Exception:  # noqa: BLE001 - that it is refused is compared, too
        return []
    found = []
    for id, result in builder.results.items():
        windowed = result.key.inner is not None
        key = "str" if not windowed else "session" if result.key.size_ms is None else "time"
        found.append(Known(id, result.kind, key, result.value))
    return found


PROCESSORS = (
    "pass",
    "fan:2",
    "meta",
    "add_header:h:v",
    "drop_headers",
    "shift_ts:5",
    "shift_ts:-3",
    "throw_if:cc",
    "route",
    "tick:stream:5",
    "tick_once:wall:5",
    "two_ticks:stream:6:9",
    "timer:stream:3",
)
#: With the kind of store that they need, and how it may be.
PROCESSORS_WITH_STORES: tuple[tuple[str, str], ...] = (
    ("dedup:5", "kv"),
    ("history", "kv"),
    ("buffer:stream:7", "kv"),
    ("buffer:wall:5", "kv"),
    ("scan:range:a:c", "kv"),
    ("scan:reverse_range:a:", "kv"),
    ("scan:reverse_all", "kv"),
    ("scan:prefix:b", "kv"),
    ("ts_history", "ts_kv"),
    ("lookup", "ts_kv"),
    ("window_put:15", "window"),
    ("window_put:3", "window"),
    ("session_put:8", "session"),
    ("session_put:1", "session"),
    ("versioned_put:3", "versioned"),
    ("versioned_put:20", "versioned"),
)
WINDOWS: tuple[Json, ...] = (
    {"type": "unlimited"},
    {"type": "unlimited", "start": 20},
    {"type": "tumbling", "size": 1},
    {"type": "tumbling", "size": 7, "grace": 30},
    {"type": "hopping", "size": 9, "advance": 1, "grace": 4},
    {"type": "hopping", "size": 4, "advance": 4},
    {"type": "sliding", "diff": 1},
    {"type": "sliding", "diff": 25, "grace": 10},
    {"type": "session", "gap": 1},
    {"type": "session", "gap": 15, "grace": 10},
    {"type": "session", "gap": 3, "grace": 100},
)


class Extension:
    """Adds steps to a scenario."""

    def __init__(self, scenario: Json, chance: random.Random) -> None:
        self._scenario = scenario
        self._r = chance
        self._n = 0
        self._known = known(scenario)

    def add(self) -> None:
        """One of all, at random."""
        choices = (
            self._process,
            self._process_with_store,
            self._look_up,
            self._grace_join,
            self._foreign_key_join,
            self._self_join,
            self._suppress,
            self._window,
            self._cogroup,
            self._table_chain,
            self._global_join,
            self._read_again,
        )
        self._r.choice(choices)()

    # Names and steps

    def _name(self, prefix: str) -> str:
        """One that nothing else has."""
        self._n += 1
        return f"{prefix}{self._n}"

    def _step(self, op: str, source: str | None = None, **fields: Any) -> str:
        step: Json = {"id": self._name("x"), "op": op}
        if source is not None:
            step["from"] = source
        self._scenario["steps"].append(step | fields)
        return str(step["id"])

    def _sink(self, source: str) -> None:
        self._scenario["steps"].append({"op": "to", "from": source, "topic": self._name("xout")})

    def _stream(self) -> str:
        """One with plain keys; at times the records of a new topic."""
        found = [one.id for one in self._known if one.kind == "stream" and one.key == "str"]
        if found and self._r.random() < 0.7:
            return self._r.choice(found)
        return self._step("stream", topics=[self._name("xin")])

    def _table(self, **fields: Any) -> str:
        found = [one.id for one in self._known if one.kind == "table" and one.key == "str"]
        if found and not fields and self._r.random() < 0.6:
            return self._r.choice(found)
        return self._step("table", topic=self._name("xt"), **fields)

    def _store(self, **fields: Any) -> Json:
        """A materialization with a name."""
        kind = self._r.choice([{}, {"type": "lru:1"}, {"type": "lru:2"}, {"type": "in_memory"}])
        cached = {"cached": self._r.random() < 0.5} if self._r.random() < 0.6 else {}
        return {"store": self._name("X"), **kind, **cached, **fields}

    def _versioned(self) -> Json:
        history = self._r.choice([0, 5, 20, 100])
        segment = {"segment": self._r.choice([1, 5, 60])} if self._r.random() < 0.3 else {}
        return {"store": self._name("X"), "versioned": {"history": history, **segment}}

    # Operators

    def _process(self) -> None:
        processor = self._r.choice(PROCESSORS)
        children = [self._name("xc"), self._name("xc")] if processor == "route" else []
        source = self._step("process", self._stream(), processor=":".join([processor, *_listed(children)]))
        for child in children:
            self._sink(self._step("map_values", source, fn="with_key", name=child))
        if not children:
            self._sink(source)

    def _process_with_store(self) -> None:
        processor, kind = self._r.choice(PROCESSORS_WITH_STORES)
        step: Json = {"op": "add_store", "store": self._name("X"), "type": kind}
        if kind != "versioned":
            step |= {"persistent": self._r.random() < 0.5, "cached": self._r.random() < 0.5}
        if kind in ("window", "session", "versioned"):
            step["retention"] = self._r.choice([20, 60, 500])
        if kind == "window":
            step |= {"size": self._r.choice([1, 10]), "retain_duplicates": self._r.random() < 0.4}
            if step["retain_duplicates"]:
                # Duplicates are not to be had from a cache.
                step["cached"] = False
        if self._r.random() < 0.2:
            step["logging"] = False
        self._scenario["steps"].append(step)
        op = "process_values" if processor in ("history", "dedup:5", "lookup") else "process"
        self._sink(self._step(op, self._stream(), processor=processor, stores=[step["store"]]))

    def _look_up(self) -> None:
        """In the store of a table, or of a global one."""
        if self._r.random() < 0.5:
            store = self._store()
            self._step("global_table", topic=self._name("xg"), materialized=store)
            where: Json = {"stores": [store["store"]], "global_store": True}
        else:
            store = self._versioned() if self._r.random() < 0.3 else self._store()
            self._table(materialized=store)
            where = {"stores": [store["store"]]}
        self._sink(self._step("process_values", self._stream(), processor="lookup", **where))

    def _grace_join(self) -> None:
        table = self._table(materialized=self._versioned())
        source = self._step("filter_not", self._stream(), fn="key_null")
        op = self._r.choice(["join", "left_join"])
        grace = self._r.choice([0, 1, 5, 20])
        self._sink(self._step(op, source, **{"with": table}, fn="join_key:&", grace=grace))

    def _foreign_key_join(self) -> None:
        key_fn = self._r.choice(["first:1", "last:1", "keep", "null", "null_if:b", "field:1", "const:a"])
        op = self._r.choice(["fk_join", "fk_left_join"])
        left, right = self._table(), self._table()
        if self._r.random() < 0.2:
            right = left
        made = {"materialized": self._store()} if self._r.random() < 0.5 else {}
        joined = self._step(op, left, **{"with": right}, key_fn=key_fn, fn="join:&", **made)
        self._sink(self._step("to_stream", joined))

    def _self_join(self) -> None:
        source, op = self._stream(), self._r.choice(["join", "join", "left_join", "outer_join"])
        windows = self._r.choice(
            [{"diff": 0}, {"diff": 5, "grace": 3}, {"before": 0, "after": 6}, {"before": 7, "after": 0}]
        )
        more: Json = {"logging": False} if self._r.random() < 0.2 else {}
        if self._r.random() < 0.3:
            more["store"] = self._name("X")
        self._sink(self._step(op, source, **{"with": source}, fn="join_key:&", windows=windows, **more))

    def _suppress(self) -> None:
        bounds: Json = self._r.choice(
            [{"max_records": 1}, {"max_records": 3}, {"max_bytes": 150}, {"max_records": 2, "max_bytes": 300}]
        )
        tables = [one.id for one in self._known if one.kind == "table" and one.key == "time"]
        if tables and self._r.random() < 0.5:
            source, until = self._r.choice(tables), {"until": "window_closes"}
        else:
            source, until = self._table(), {"until": "time_limit", "wait": self._r.choice([0, 3, 40])}
            if self._r.random() < 0.4:
                bounds = {**bounds, "full": "shut_down"}
        held = self._step("suppress", source, **until, **bounds)
        self._sink(self._step("to_stream", held))

    def _window(self) -> None:
        windows = self._r.choice(WINDOWS)
        emit = self._r.choice([{}, {"emit": "close"}, {"emit": "close"}, {"emit": "update"}])
        group = self._step("group_by_key", self._stream(), name=self._name("xg"))
        window = self._step("windowed_by", group, windows=windows, **emit)
        made: Json = {"materialized": self._windows_store()} if self._r.random() < 0.7 else {}
        op = self._r.choice(["count", "reduce", "aggregate"])
        if op != "count":
            made["fn"] = self._r.choice(["cat:+", "null", "cat_null_if:c", "first", "max"])
        if op == "aggregate":
            made["init"] = self._r.choice(["", None, "i"])
            if windows["type"] == "session":
                made["merge_fn"] = "kmerge:/"
        table = self._step(op, window, **made)
        self._known.append(Known(table, "table", "session" if windows["type"] == "session" else "time", ""))
        self._sink(self._step("to_stream", table))

    def _windows_store(self) -> Json:
        store = {"store": self._name("X"), "type": self._r.choice(["in_memory", "rocksdb"])}
        if self._r.random() < 0.5:
            store["cached"] = self._r.random() < 0.5
        if self._r.random() < 0.5:
            store["retention"] = self._r.choice([150, 400])
        return store

    def _cogroup(self) -> None:
        groups = [
            {
                "from": self._step("group_by_key", self._stream(), name=self._name("xg")),
                "fn": self._r.choice(["cat:+", "kcat:-", "cat_null_if:c", "null", "len"]),
            }
            for _ in range(self._r.randint(2, 4))
        ]
        cogroup = self._step("cogroup", groups=groups)
        more: Json = {"init": self._r.choice(["", None, "i"])}
        if self._r.random() < 0.4:
            windows = self._r.choice(WINDOWS)
            cogroup = self._step("windowed_by", cogroup, windows=windows)
            more["materialized"] = self._windows_store()
            if windows["type"] == "session":
                more["merge_fn"] = "merge:/"
        else:
            more["materialized"] = self._store()
        self._sink(self._step("to_stream", self._step("aggregate", cogroup, **more)))

    def _table_chain(self) -> None:
        """Steps of a table, some with stores that forget or keep versions, and a group or join behind them."""
        table = self._table()
        for _ in range(self._r.randint(1, 3)):
            op, fn = self._r.choice(
                [
                    ("filter", "len_even"),
                    ("filter_not", "contains:c"),
                    ("map_values", "null_if:b"),
                    ("map_values", "append:z"),
                    ("transform_values", "with_key"),
                ]
            )
            store = self._r.choice([None, None, self._store(), self._versioned()])
            table = self._step(op, table, fn=fn, **({} if store is None else {"materialized": store}))
        end = self._r.choice(["group", "join", "none"])
        if end == "group":
            group = self._step("group_by", table, key_fn="first:1", name=self._name("xg"))
            more = {"init": None, "fn": "cat:+", "sub_fn": self._r.choice(["cat:-", "null", "first"])}
            table = self._step("aggregate", group, **more, materialized=self._store())
        elif end == "join":
            op = self._r.choice(["join", "left_join", "outer_join"])
            made = {"materialized": self._store()} if self._r.random() < 0.5 else {}
            table = self._step(op, table, **{"with": self._table()}, fn="null_if:c", **made)
        self._sink(self._step("to_stream", table))

    def _global_join(self) -> None:
        table = self._step("global_table", topic=self._name("xg"), materialized=self._store())
        key_fn = self._r.choice(["keep", "key", "first:1", "null", "null_if:b"])
        op = self._r.choice(["join", "left_join"])
        self._sink(self._step(op, self._stream(), **{"with": table}, key_fn=key_fn, fn="join_key:&"))

    def _read_again(self) -> None:
        """A topic that is read already, by a source of its own."""
        steps = [s for s in self._scenario["steps"] if s["op"] == "stream" and "topics" in s]
        if steps:
            step = self._r.choice(steps)
            fields = {name: step[name] for name in ("topics", "value_type") if name in step}
            if self._r.random() < 0.1:
                # Differs on purpose.
                fields["timestamp_extractor"] = "partition_time"
            source = self._step("stream", **fields)
            made = {"materialized": self._store()} if self._r.random() < 0.5 else {}
            self._sink(self._step("to_stream", self._step("to_table", source, **made)))


def _listed(names: list[str]) -> list[str]:
    return [",".join(names)] if names else []
