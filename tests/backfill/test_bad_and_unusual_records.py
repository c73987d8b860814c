"""Records that cannot be read or processed, late timestamps and headers fare as live; so does the order they decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pystreams import App
from pystreams.errors import ProcessingError, ProductionError, SerializationError
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from pystreams.processor import Processor
from pystreams.record import Record
from tests.backfill.kit import Backfill, everything, lines, memory, single
from tests.backfill.live import append, create, left_on
from tests.live.support import Line, Log, eventually, run_to_the_end

INT = b"\x00" * 7


def totals(**settings: Any) -> App:
    """Two inputs in one task: what is counted depends on the order of both."""
    app = App("bad", statestore_cache_max_bytes=0, **settings)
    one = app.stream("one", key=str, value=int)
    other = app.stream("other", key=str, value=int)
    one.merge(other).group_by_key(key=str, value=int).reduce(
        lambda total, x: 2 * total + x, name="totals"
    ).to_stream().to("out")
    return app


#: Undecodable records first, in the middle, several in a row, with times that would change the order if they counted.
PAST = {
    "one": [
        [
            Line(b"a", b"bad", 900),
            Line(b"a", INT + b"\x01", 10),
            Line(b"a", b"bad", 500),
            Line(b"a", b"worse", 3),
            Line(b"a", INT + b"\x02", 20),
            Line(b"a", None, 21),
            Line(b"a", INT + b"\x03", 15),
            Line(b"a", b"bad", 16),
        ]
    ],
    "other": [[Line(b"a", INT + bytes([4 + i]), 5 * i, (("n", bytes([i])),)) for i in range(9)]],
}


@pytest.mark.live
def test_undecodable_records_do_not_disturb_the_order(new_log: Callable[[str], Log], tmp_path: Path) -> None:
    """A record that cannot be read has no time: live passes it as soon as it is a queue's head."""
    log = new_log("live")
    settings = {
        "deserialization_exception_handler": "dead_letter",
        "errors_dead_letter_queue_topic_name": "dead",
        "state_dir": tmp_path / "state",
    }
    create(log, PAST, ["out", "dead"])
    append(log, PAST)
    run_to_the_end(log, totals(**settings))
    expected = left_on(log, totals(**settings), ["out", "dead"])
    assert len(expected.sinks[TopicPartition("dead", 0)]) == 4
    for batch_rows, commit_records in [(1, 1), (3, 4), (1000, 4), (1000, 1000)]:
        found = Backfill(
            totals(**settings),
            memory(PAST),
            tmp_path / f"{batch_rows}-{commit_records}",
            batch_rows=batch_rows,
            commit_records=commit_records,
        ).run()
        assert {p: found.sink(p.topic)[p.partition] for p in expected.sinks} == expected.sinks
        assert found.changelog("totals")[0] == expected.changelogs[TopicPartition("bad-totals-changelog", 0)]


def test_the_default_handler_stops_the_backfill_and_names_the_record(tmp_path: Path) -> None:
    with pytest.raises(SerializationError, match="one-0 offset 0"):
        Backfill(totals(), memory(PAST), tmp_path / "staging").run()


def test_times_taken_from_values_order_the_records(tmp_path: Path) -> None:
    """The log's timestamps run the other way round."""

    def program() -> App:
        app = App(
            "timed", statestore_cache_max_bytes=0, default_timestamp_extractor=lambda record: record.value
        )
        app.stream("one", key=str, value=int).merge(app.stream("other", key=str, value=int)).to("out")
        return app

    past = {
        "one": [lines([("a", 30, 1), ("b", 10, 2), ("c", 50, 3)])],
        "other": [lines([("d", 20, 9), ("e", -1, 8), ("f", 40, 7)])],
    }
    found = single(Backfill(program(), memory(past), tmp_path / "staging", batch_rows=2).run())
    assert [(record.key, record.timestamp) for record in found.sinks["out"]] == [
        (b"d", 20), (b"a", 30), (b"b", 10), (b"f", 40), (b"c", 50),
    ]  # fmt: skip
    assert found.dropped == 1


def test_a_function_that_raises_names_task_and_record(tmp_path: Path) -> None:
    app = App("raises")
    app.stream("in", key=str, value=int).map_values(lambda value: 1 // value).to("out", key=str, value=int)
    with pytest.raises(ProcessingError, match="ZeroDivisionError") as raised:
        Backfill(app, memory({"in": [[], lines([("a", 1, 1), ("b", 0, 2)])]}), tmp_path / "staging").run()
    assert "0_1" in raised.value.where
    assert "in-1 offset 1" in raised.value.where


def test_a_topic_chosen_by_record_must_not_be_an_input(tmp_path: Path) -> None:
    app = App("chooses")
    app.stream("in", key=str, value=str).to(lambda value: value, key=str, value=str)
    found = Backfill(app, memory({"in": [lines([("a", "x", 1)], value=str)]}), tmp_path / "one").run()
    assert list(found.sink("x")) == [0]
    with pytest.raises(ProductionError, match="topic in, which it also reads"):
        Backfill(app, memory({"in": [lines([("a", "in", 1)], value=str)]}), tmp_path / "two").run()


def routed() -> App:
    """A topic chosen by record, written by a narrow and by a wide slice."""
    app = App("routes")
    app.stream("narrow", key=str, value=str).to(lambda value: "chosen", key=str, value=str)
    app.stream("wide", key=str, value=str).to(lambda value: "chosen", key=str, value=str)
    return app


def test_a_topic_chosen_by_record_has_one_number_of_partitions(tmp_path: Path) -> None:
    """Else a key would be in several of them."""
    keys = [f"k{number}" for number in range(20)]
    sent = lines([(key, "v", 1) for key in keys], value=str)
    past = {"narrow": [sent], "wide": [sent, [], []]}
    backfill = Backfill(routed(), memory(past), tmp_path / "unknown")
    found = backfill.run().sink("chosen")
    assert {p: [record.key for record in records] for p, records in found.items()} == {
        p: 2 * [key.encode() for key in keys if partition_for_key(key.encode(), 3) == p] for p in range(3)
    }
    known = Backfill(routed(), memory(past, {"chosen": 5}), tmp_path / "known").run().sink("chosen")
    assert sorted(known) == sorted({partition_for_key(key.encode(), 5) for key in keys})


def test_dead_letters_have_one_number_of_partitions(tmp_path: Path) -> None:
    app = App(
        "dead",
        deserialization_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead-letters",
    )
    for topic in ("narrow", "wide"):
        app.stream(topic, key=str, value=int).to("out", key=str, value=int)
    bad = [Line(b"k%d" % number, b"bad", 1) for number in range(20)]
    found = Backfill(app, memory({"narrow": [bad], "wide": [bad, [], []]}), tmp_path / "staging").run()
    by_partition = {p: {record.key for record in of} for p, of in found.sink("dead-letters").items()}
    keys = [line.key or b"" for line in bad]
    assert by_partition == {p: {key for key in keys if partition_for_key(key, 3) == p} for p in range(3)}


def escaping() -> App:
    app = App("escapes")
    app.stream("in", key=str, value=str).to(lambda value: value, key=str, value=str)
    return app


@pytest.mark.live
def test_a_name_that_no_topic_may_have_is_no_path(new_log: Callable[[str], Log], tmp_path: Path) -> None:
    past = {"in": [lines([("a", "../../../escaped", 1)], value=str)]}
    with pytest.raises(ProductionError, match="not a legal topic name"):
        Backfill(escaping(), memory(past), tmp_path / "a" / "b" / "staging").run()
    assert not list(tmp_path.glob("**/*escaped*"))
    # Nor does live take it.
    log = new_log("live")
    create(log, past, [])
    append(log, past)
    streams = log.start(escaping())
    eventually(lambda: streams.state.name == "ERROR")
    streams.close(10_000)


class CommitsAtThird(Processor[str, int, str, int]):
    """Asks for a commit at every third record."""

    def process(self, record: Record[str, int]) -> None:
        self.context.forward(record)
        if record.value % 3 == 2:
            self.context.commit()


@pytest.mark.parametrize("batch_rows", [1, 5, 1000])
def test_a_commit_that_a_processor_asks_for_is_made_there(batch_rows: int, tmp_path: Path) -> None:
    app = App("asks", statestore_cache_max_bytes=1_000_000)
    asked = app.stream("in", key=str, value=int).process_values(CommitsAtThird, value=int)
    asked.group_by_key().reduce(lambda old, new: new, name="last").to_stream().to("out")
    past = {"in": [lines([("a", i, i) for i in range(8)])]}
    job = Backfill(app, memory(past), tmp_path / "staging", batch_rows=batch_rows, exact_updates=True)
    found = single(job.run())
    assert [record.value for record in found.sinks["out"]] == [INT + b"\x02", INT + b"\x05", INT + b"\x07"]


def test_empty_partitions_have_their_tasks_too(tmp_path: Path) -> None:
    found = Backfill(totals(), memory({"one": [[], []], "other": [[], []]}), tmp_path / "staging").run()
    assert everything(found)["changelogs"] == {"totals": {0: [], 1: []}}
    assert {p.topic for p in found.offsets()} == {"one", "other"}
