"""Every task of a backfill finds global stores whole: all that their topics hold up to the cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pystreams import App, Stores
from pystreams.backfill.api import backfill
from pystreams.backfill.application import loaded
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.global_tables import GlobalTables
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.plan.notes import notes
from pystreams.backfill.plan.slices import make_plan
from pystreams.backfill.sources import MemorySource
from pystreams.backfill.sources.ranges import InputRange
from pystreams.errors import (
    OffsetOutOfRangeError,
    ProcessingError,
    ProductionError,
    StateError,
    TopicError,
    TopologyError,
)
from pystreams.ids import TopicPartition
from pystreams.processor import Processor
from pystreams.record import Record
from pystreams.topology.nodes import ProcessorNode
from tests.backfill.kit import Backfill, everything, lines, memory
from tests.backfill.live import append, create
from tests.backfill.programs import joined_globally
from tests.live.support import Log

NewLog = Callable[[str], Log]

#: A row of "k1" that changes late, and one that only the second partition has.
NAMES = [
    lines([("k1", "a", 5), ("k1", "bbb", 500)], value=str),
    lines([("k2", "cc", 7)], value=str),
]
AMOUNTS = [lines([("x", 1, 10), ("y", 2, 20)]), lines([("z", 1, 30), ("z", 4, 90)])]
PAST = {"names": NAMES, "amounts": AMOUNTS}


def sums(result: BackfillResult) -> dict[bytes, int]:
    return {
        record.key: int.from_bytes(record.value, "big")
        for of_partition in result.sink("sums").values()
        for record in of_partition
        if record.key is not None and record.value is not None
    }


@dataclass(frozen=True)
class Counting:
    """A source that notes what is read of it."""

    source: MemorySource
    read_of: list[TopicPartition] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def read(self, input: InputRange) -> Iterator[Arrow]:
        self.read_of.append(input.partition)
        return self.source.read(input)


def test_records_are_joined_with_what_the_topic_holds_in_the_end(tmp_path: Path) -> None:
    result = Backfill(joined_globally(), memory(PAST, {"sums": 2}), tmp_path).run()
    assert sums(result) == {b"x": 1 + 3, b"y": 2 + 2, b"z": 1 + 3}


def test_a_time_does_not_cut_it_but_offsets_do(tmp_path: Path) -> None:
    early = Backfill(joined_globally(), memory(PAST, {"sums": 2}), tmp_path / "time", until=15).run()
    assert sums(early) == {b"x": 1 + 3}
    at = {TopicPartition("names", 0): 1}
    cut = Backfill(joined_globally(), memory(PAST, {"sums": 2}), tmp_path / "offsets", until=at).run()
    assert sums(cut) == {b"x": 1 + 1, b"y": 2 + 2, b"z": 1 + 1}


def test_it_is_read_once_for_all_tasks_and_nothing_stays_behind(tmp_path: Path) -> None:
    source: Any = Counting(memory(PAST, {"sums": 2}))
    backfilled = Backfill(joined_globally(), source, tmp_path)
    result = backfilled.run()
    assert [p for p in source.read_of if p.topic == "names"] == [
        TopicPartition("names", 0),
        TopicPartition("names", 1),
    ]
    assert result.plan.slices[0].tasks == 2
    assert list(tmp_path.rglob("pystreams-global*")) == []


def in_memory(**settings: Any) -> App:
    app = App("remembered", **settings)
    names = app.global_table("names", key=str, value=str, name="rows", persistent=False)
    app.stream("amounts", key=str, value=int).left_join(
        names, lambda amount, name: amount + len(name or ""), key_fn=lambda amount: f"k{amount}", value=int
    ).to("sums", key=str, value=int)
    return app


def test_one_that_is_kept_in_memory_is_filled_by_each_task(tmp_path: Path) -> None:
    source: Any = Counting(memory(PAST, {"sums": 2}))
    result = Backfill(in_memory(), source, tmp_path).run()
    assert sums(result) == {b"x": 4, b"y": 4, b"z": 4}
    assert [p.partition for p in source.read_of if p.topic == "names"] == [0, 1, 0, 1]


class Shouting(Processor[str, str, Any, Any]):
    """Fills a global store with what it makes of records."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.rows = context.store("loud")

    def process(self, record: Record[str, str]) -> None:
        if record.value == "bad":
            raise ValueError("not that one")
        self.rows.put(record.key, record.value.upper())


class Looking(Processor[str, int, str, str]):
    def init(self, context: Any) -> None:
        super().init(context)
        self.rows = context.store("loud")

    def process(self, record: Record[str, int]) -> None:
        self.context.forward(record.with_value(self.rows.get(f"k{record.value}") or "-"))


def shouting(looking: type[Processor[str, int, str, str]] = Looking) -> App:
    app = App("loud")
    app.add_global_store(Stores.key_value_store("loud", str, str), "names", Shouting, key=str, value=str)
    app.stream("amounts", key=str, value=int).process(looking, key=str, value=str).to("out")
    return app


def test_processors_fill_and_read_global_stores(tmp_path: Path) -> None:
    result = Backfill(shouting(), memory(PAST, {"out": 2}), tmp_path).run()
    assert {(r.key, r.value) for of in result.sink("out").values() for r in of} == {
        (b"x", b"BBB"),
        (b"y", b"CC"),
        (b"z", b"BBB"),
        (b"z", b"-"),
    }
    told = [one.kind for one in notes(result.plan, result.loaded) if "(names)" in one.text]
    assert told == ["one legal result"]


def test_a_record_that_cannot_be_processed_there_fails_the_backfill(tmp_path: Path) -> None:
    past = {**PAST, "names": [lines([("k1", "bad", 5)], value=str)]}
    with pytest.raises(ProcessingError, match="names-0"):
        Backfill(shouting(), memory(past, {"out": 2}), tmp_path).run()


def test_what_a_builder_that_was_killed_has_left_is_cleared_away(tmp_path: Path) -> None:
    backfilled = Backfill(joined_globally(), memory(PAST, {"sums": 2}), tmp_path / "staging")
    shared = tmp_path / "shared"
    (shared / "pystreams-global-building-1" / "rocksdb").mkdir(parents=True)
    (shared / "pystreams-global-another").mkdir()

    counting: Any = Counting(memory(PAST, {"sums": 2}))
    nodes = backfilled.loaded.built.subtopologies[0].nodes

    def tables(own: str) -> GlobalTables:
        found = GlobalTables(
            backfilled.loaded, backfilled.manifest.inputs, counting, 0, shared=shared, own=tmp_path / own
        )
        found.open_for(nodes)
        return found

    with closing(tables("one")) as first, closing(tables("two")) as second:
        (name,) = first
        assert first[name].get("k1").value == "bbb"
        assert second[name].get("k2").value == "cc"
        assert len([path for path in shared.iterdir() if path.is_dir()]) == 1
        assert len(counting.read_of) == 2


def test_several_tasks_at_once_read_it_once(tmp_path: Path) -> None:
    backfilled = Backfill(joined_globally(), memory(PAST, {"sums": 2}), tmp_path / "staging")
    counting: Any = Counting(memory(PAST, {"sums": 2}))
    nodes = backfilled.loaded.built.subtopologies[0].nodes

    def row(own: str) -> str:
        tables = GlobalTables(
            backfilled.loaded, backfilled.manifest.inputs, counting, 0, shared=tmp_path, own=tmp_path / own
        )
        with closing(tables):
            tables.open_for(nodes)
            (name,) = tables
            found: str = tables[name].get("k1").value
            return found

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(row, map(str, range(4)))) == {"bbb"}
    assert len(counting.read_of) == 2


def test_steps_that_read_none_need_none(tmp_path: Path) -> None:
    backfilled = Backfill(joined_globally(), memory(PAST, {"sums": 2}), tmp_path / "staging")
    tables = GlobalTables(
        backfilled.loaded, backfilled.manifest.inputs, None, 0, shared=tmp_path, own=tmp_path / "own"
    )
    nodes = backfilled.loaded.built.subtopologies[0].nodes
    tables.open_for(node for node in nodes if not isinstance(node, ProcessorNode))
    (name,) = tables
    assert name in tables
    with pytest.raises(KeyError):
        tables[name]


def test_the_plan_says_that_the_result_depends_on_it(tmp_path: Path) -> None:
    backfilled = Backfill(joined_globally(), memory(PAST, {"sums": 2}), tmp_path)
    told = [note for note in notes(backfilled.plan, backfilled.loaded) if "topic names" in note.text]
    assert [note.kind for note in told] == ["one legal result"]


def test_a_later_backfill_finds_what_has_come_since(tmp_path: Path) -> None:
    cut = {TopicPartition("names", 0): 1, TopicPartition("amounts", 0): 1, TopicPartition("amounts", 1): 0}
    given: dict[str, Any] = {"sources": memory(PAST, {"sums": 2}), "commit_records": 5}
    first = backfill(joined_globally(), staging=tmp_path / "first", until=cut, **given)
    second = backfill(joined_globally(), staging=tmp_path / "second", previous=tmp_path / "first", **given)
    assert sums(first) == {b"x": 1 + 1}
    assert sums(second) == {b"y": 2 + 2, b"z": 1 + 3}
    # What it has read before is read again: the whole of it counts.
    starts = {input.partition: input.start for input in second.manifest.inputs}
    assert starts[TopicPartition("names", 0)] == 0
    assert starts[TopicPartition("amounts", 0)] == 1


def test_resumed_it_is_the_same(tmp_path: Path) -> None:
    source = memory(PAST, {"sums": 2})
    once = Backfill(joined_globally(), source, tmp_path / "once").run()
    again = Backfill(joined_globally(), source, tmp_path / "twice", batch_rows=1)
    again.run()
    assert everything(again.run(resume=True)) == everything(once)


# What is refused


def test_a_topic_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TopicError, match="topic names does not exist"):
        make_plan(loaded(joined_globally(), {}).built, {"amounts": 2})


def writes_it(by_record: bool) -> App:
    app = App("circle")
    names = app.global_table("names", key=str, value=str)
    joined = app.stream("words", key=str, value=str).join(names, lambda a, b: b, key_fn=lambda word: word)
    joined.to((lambda key, value: "names") if by_record else "names", key=str, value=str)
    return app


def test_an_application_that_writes_its_global_topic_is_refused(tmp_path: Path) -> None:
    past = {"names": NAMES, "words": [lines([("a", "k1", 5)], value=str)]}
    with pytest.raises(TopologyError, match="both writes topic names and reads it"):
        Backfill(writes_it(by_record=False), memory(past), tmp_path / "named")
    with pytest.raises(ProductionError, match="writes to topic names, which it also reads"):
        Backfill(writes_it(by_record=True), memory(past), tmp_path / "by record").run()


@pytest.mark.live
def test_it_is_handed_over_to_the_log_that_has_the_topic(new_log: NewLog, tmp_path: Path) -> None:
    result = Backfill(joined_globally(), memory(PAST, {"sums": 2}), tmp_path / "staging").run()
    without, less, other, same = (new_log(name) for name in ("without", "less", "other", "same"))
    for log in (without, less, other, same):
        create(log, {"amounts": AMOUNTS}, ["sums"])
        append(log, {"amounts": AMOUNTS})
    for log in (less, other, same):
        create(log, {"names": NAMES}, [])
    append(less, {"names": [NAMES[0][:1], NAMES[1]]})
    append(other, {"names": [[*NAMES[0][:1], *lines([("k1", "ddd", 500)], value=str)], NAMES[1]]})
    append(same, {"names": NAMES})
    with pytest.raises(TopicError, match="names-0"):
        hand_over(result, without.broker)
    with pytest.raises(
        OffsetOutOfRangeError, match="global store is not the one that was backfilled: names-0"
    ):
        hand_over(result, less.broker)
    with pytest.raises(TopicError, match="topic names is not the one that was backfilled"):
        hand_over(result, other.broker)
    hand_over(result, same.broker)
    assert {partition.topic for partition in same.committed("globally")} == {"amounts"}


def test_it_can_only_be_read(tmp_path: Path) -> None:
    class Writing(Looking):
        def process(self, record: Record[str, int]) -> None:
            self.rows.put("k1", "mine")

    with pytest.raises(StateError, match="only be read"):
        Backfill(shouting(Writing), memory(PAST, {"out": 2}), tmp_path).run()
