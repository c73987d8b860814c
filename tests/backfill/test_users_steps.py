"""Whatever has a context - processors, transformers, what a wrapper puts around a step - may do what processors may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pystreams import App, Processor, Record, Stores, ValueTransformer
from pystreams.backfill.application import loaded
from pystreams.backfill.plan.notes import notes
from pystreams.backfill.plan.slices import make_plan
from pystreams.errors import TopologyError
from pystreams.topology.wrapping import AnySupplier, ProcessorSupplier
from tests.backfill.kit import Backfill, lines, memory

PAST = {
    "names": [lines([("k1", "a", 5), ("k1", "bbb", 500)], value=str)],
    "words": [lines([("k1", "x", 10), ("k2", "y", 20)], value=str)],
}


def named(rows: Any, key: str) -> str:
    row = rows.get(key)
    return "-" if row is None else str(row.value)


class Naming(Processor[Any, Any, Any, Any]):
    """Around a step: gives it values with names from a global table."""

    def __init__(self, inner: Processor[Any, Any, Any, Any]) -> None:
        self.inner = inner

    def init(self, context: Any) -> None:
        self.inner.init(context)
        self.rows = context.store("rows")

    def process(self, record: Record[Any, Any]) -> None:
        self.inner.process(record.with_value(record.value + named(self.rows, record.key)))

    def close(self) -> None:
        self.inner.close()


def wrap(name: str, supplier: ProcessorSupplier) -> AnySupplier:
    return lambda: Naming(supplier())


class Transforming(ValueTransformer[str, str, str]):
    def init(self, context: Any) -> None:
        super().init(context)
        self.rows = context.store("rows")

    def transform(self, key: str, value: str | None) -> str | None:
        return None if value is None else value + named(self.rows, key)


def with_a_wrapper() -> App:
    app = App("named", processor_wrapper=wrap)
    app.global_table("names", key=str, value=str, name="rows")
    words = app.stream("words", key=str, value=str)
    words.filter(lambda key, value: True).to("out")
    return app


def with_a_transformer() -> App:
    app = App("named", statestore_cache_max_bytes=0)
    app.global_table("names", key=str, value=str, name="rows")
    table = app.table("words", key=str, value=str)
    table.transform_values(Transforming, value=str).to_stream().to("out")
    return app


@pytest.mark.parametrize("program", [with_a_wrapper, with_a_transformer])
def test_it_finds_global_tables_and_the_plan_says_so(program: Any, tmp_path: Path) -> None:
    backfilled = Backfill(program(), memory(PAST, {"out": 1}), tmp_path)
    told = {note.kind for note in notes(backfilled.plan, backfilled.loaded) if "(names)" in note.text}
    assert told == {"one legal result"}
    assert [record.value for record in backfilled.run().sink("out")[0]] == [b"xbbb", b"y-"]


@pytest.mark.parametrize("program", [with_a_wrapper, with_a_transformer])
def test_the_plan_says_what_is_exempt_of_it(program: Any, tmp_path: Path) -> None:
    backfilled = Backfill(program(), memory(PAST, {"out": 1}), tmp_path)
    exempt = [note.text for note in notes(backfilled.plan, backfilled.loaded) if note.kind == "exempt"]
    assert any("attributes" in text for text in exempt)


class Reading(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record.with_value(str(self.context.store("seen").get(record.key))))


class Writing(ValueTransformer[str, str, str]):
    def transform(self, key: str, value: str | None) -> str | None:
        self.context.store("seen").put(key, value)
        return value


def test_a_topic_that_feeds_itself_through_a_store_that_a_transformer_writes_is_refused() -> None:
    app = App("circle")
    seen = Stores.key_value_store("seen", str, str)
    read = app.stream("words", key=str, value=str).process(Reading, stores=[seen], key=str, value=str)
    table = read.repartition(name="back").to_table()
    table.transform_values(Writing, stores=["seen"], value=str)
    with pytest.raises(TopologyError, match="circle-back-repartition feeds itself"):
        make_plan(loaded(app, {}).built, {"words": 1})
