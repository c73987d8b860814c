"""A task of stateless steps with most of the records is computed in stretches of its records: sinks, stores behind
repartition topics, offsets, drops and left out records are those of the task in one piece. A task in which something
connects one record with another is not cut like this."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pystreams import App, TimeWindows, agg
from pystreams.backfill.compute.shares import By, cut_by
from pystreams.backfill.workers.processes import ProcessExecutor
from tests.backfill.kit import Backfill, everything, last_values, memory
from tests.backfill.workers.in_shares import HOT, InShares, TwoProcesses
from tests.examples import examples
from tests.live.support import Line

GROUPED: dict[str, Callable[[Any], Any]] = {
    "count": lambda grouped: grouped.count(name="s"),
    "sum": lambda grouped: grouped.reduce(operator.add, merge=operator.add, name="s"),
    "declared": lambda grouped: grouped.aggregate(name="s", total=agg.sum(lambda v: v), n=agg.count()),
}


def tenth(value: int) -> int:
    """Does not get a zero."""
    return 60 // value


def application(name: str) -> App:
    """Stateless steps before a sink, a topic that gets each record, and one that gets partial aggregates."""
    app = App(
        "cut",
        processing_exception_handler="continue",
        deserialization_exception_handler="dead_letter",
        errors_dead_letter_queue_topic_name="dead",
    )
    stream = app.stream("in", key=str, value=int).map_values(tenth, value=int)
    stream.filter(lambda _, value: value > 9).to("large")
    grouped = stream.flat_map_values(range, value=int).group_by(lambda key, _: key[-1], key=str, value=int)
    GROUPED[name](grouped).to_stream().map_values(str, value=str).to("out")
    stream.select_key(lambda key, _: key[0], key=str).repartition(name="all").to("again")
    return app


histories = st.lists(
    st.tuples(
        st.sampled_from(["1a", "2b", "3b", "4c"]),
        st.sampled_from([None, b"?", 0, 1, 5, 20]),
        st.integers(0, 60),
        st.sampled_from([(), (("h", b"1"),)]),
    ),
    max_size=40,
)


def history_of(rows: list[Any], partitions: int) -> list[list[Line]]:
    """Some values cannot be read, others make a function fail."""
    history: list[list[Line]] = [[] for _ in range(partitions)]
    for number, (key, value, at, headers) in enumerate(rows):
        data = value.to_bytes(8, "big") if isinstance(value, int) else value
        history[number % partitions].append(Line(key.encode(), data, at, headers))
    return history


@pytest.mark.parametrize("name", GROUPED)
@given(rows=histories, partitions=st.integers(1, 2), batch_rows=st.sampled_from([3, 1_000]))
@examples(6, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_result_is_that_of_the_task_in_one_piece(
    name: str, rows: list[Any], partitions: int, batch_rows: int, tmp_path: Path
) -> None:
    source = memory({"in": history_of(rows, partitions)}, {"large": 1, "out": 1, "again": 1, "dead": 1})
    app, first = application(name), InShares(batch_rows=batch_rows)
    whole = everything(Backfill(app, source, tmp_path / "whole", commit_records=7).run(overwrite=True))
    job = Backfill(app, source, tmp_path / "cut", commit_records=7, executor=first)
    cut = everything(job.run(overwrite=True))
    assert first.cut == {(0, number) for number in range(partitions)}
    assert cut["changelogs"] == whole["changelogs"]
    assert cut["offsets"] == whole["offsets"]
    for topic in ("large", "again", "dead"):
        assert cut["sinks"].get(topic) == whole["sinks"].get(topic)
    assert last_values(cut["sinks"]) == last_values(whole["sinks"])
    for number, one in cut["slices"].items():
        before = whole["slices"][number]
        assert (one.dropped, one.causes, one.stores, one.left_out) == (
            before.dropped,
            before.causes,
            before.stores,
            before.left_out,
        )
    # Those behind the topics get a few more partial aggregates.
    assert cut["slices"][0] == whole["slices"][0]


def counting(split: Callable[[int], Any]) -> App:
    app = App("cut")
    stream = app.stream("in", key=str, value=int).flat_map_values(split, value=int)
    stream.group_by(lambda _, value: value % 90, key=int, value=int).count(name="s").to_stream().to("out")
    return app


@pytest.mark.usefixtures("few_are_many", "same_workers")
def test_a_partition_with_most_records_keeps_all_processes_busy_also_if_one_dies(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    processes = TwoProcesses(tmp_path)

    def split(value: int) -> list[int]:
        processes.seen(value)
        return [value, value + 1]

    caplog.set_level(logging.INFO)
    whole = everything(Backfill(counting(split), memory(HOT, {"out": 2}), tmp_path / "whole").run())
    two = ProcessExecutor(processes=2)
    cut = everything(Backfill(counting(split), memory(HOT, {"out": 2}), tmp_path / "cut", executor=two).run())
    assert processes.killed.exists()
    assert caplog.text.count("its task is begun again") == 1
    assert caplog.text.count("task 0 has most records, and is computed in 2 shares") == 1
    assert cut["changelogs"] == whole["changelogs"]
    assert cut["offsets"] == whole["offsets"]
    assert last_values(cut["sinks"]) == last_values(whole["sinks"])


def first_time(record: Any, partition_time: int) -> int:
    return int(record.timestamp)


NOT_BY_RECORD: dict[str, Callable[[App], object]] = {
    "a store": lambda app: app.stream("in", key=str, value=int).group_by_key().count(name="s"),
    "a join of topics": lambda app: (
        app.stream("in", key=str, value=int).merge(app.stream("other", key=str, value=int)).to("out")
    ),
    "a function called for its effect": lambda app: (
        app.stream("in", key=str, value=int).peek(lambda *_: None).to("out")
    ),
    "partitions that a function chooses": lambda app: app.stream("in", key=str, value=int).to(
        "out", partitioner=lambda *_: 0
    ),
    "times that a function chooses": lambda app: app.stream(
        "in", key=str, value=int, timestamp_extractor=first_time
    ).to("out"),
    "partial aggregates of windows": lambda app: (
        app.stream("in", key=str, value=int)
        .group_by(lambda key, _: key, key=str, value=int)
        .windowed_by(TimeWindows.tumbling(10))
        .count(name="s")
    ),
}


def how(build: Callable[[App], object], tmp_path: Path) -> By | None:
    """How the tasks of the first slice are cut."""
    app = App("cut")
    build(app)
    job = Backfill(app, memory({**HOT, "other": HOT["in"]}, {"out": 1}), tmp_path)
    return cut_by(job.loaded, job.plan.slices[0], job.manifest.folded, job.manifest.combined)


@pytest.mark.parametrize("what", NOT_BY_RECORD)
def test_what_connects_records_is_not_cut_by_record(what: str, tmp_path: Path) -> None:
    assert how(NOT_BY_RECORD[what], tmp_path) is not By.RECORD


def test_stateless_steps_are_cut_by_record(tmp_path: Path) -> None:
    assert how(lambda app: app.stream("in", key=str, value=int).to("out"), tmp_path) is By.RECORD
