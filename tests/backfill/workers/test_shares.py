"""A task with most of the records is computed in shares of its keys: stores, offsets, drops, and the records of each
key in each sink, are those of the task in one piece. A task that cannot be cut is computed in one piece."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pystreams import App, TimeWindows
from pystreams.backfill.compute.shares import shares_of
from pystreams.backfill.plan.slices import Slice, SliceInput
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.workers.processes import ProcessExecutor
from pystreams.dsl.operators import column_looks
from pystreams.ids import TopicPartition
from pystreams.partitioning import partition_for_key
from tests.backfill.kit import Backfill, everything, last_values, lines, memory
from tests.backfill.test_folding_in_columns import Order, application, histories
from tests.backfill.workers.in_shares import HOT, InShares, TwoProcesses, compare
from tests.examples import examples
from tests.live.support import Line


def parted(records: list[Line], partitions: int) -> list[list[Line]]:
    """Records in the partitions of their keys."""
    found: list[list[Line]] = [[] for _ in range(partitions)]
    for record in records:
        found[0 if record.key is None else partition_for_key(record.key, partitions)].append(record)
    return found


@pytest.mark.parametrize("windows", ["by key", "tumbling"])
@pytest.mark.parametrize("stream", ["numbers", "orders", "halves", "count", "function"])
@given(data=st.data())
@examples(5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_result_is_that_of_the_task_in_one_piece(
    stream: str, windows: str, data: Any, tmp_path: Path
) -> None:
    kinds = {"key": int, "value": Order} if stream == "orders" else {"key": str, "value": int}
    records = lines(data.draw(histories(stream)), **kinds)
    source = memory({"in": parted(records, data.draw(st.integers(1, 2)))}, {"out": 2})
    make = partial(application, stream, windows)
    rows = data.draw(st.sampled_from([3, 1_000]), "rows of a batch")
    with patch.object(column_looks, "BATCH_RECORDS", 4):
        whole = Backfill(make(), source, tmp_path / "whole", commit_records=7).run(overwrite=True)
        job = Backfill(make(), source, tmp_path / "cut", commit_records=7, executor=InShares(batch_rows=rows))
        cut = job.run(overwrite=True)
    compare(everything(cut), everything(whole))
    assert not list((tmp_path / "cut").rglob("share-*")), "what the shares have staged"


@pytest.mark.parametrize("windows", ["by key", "tumbling"])
def test_usual_records_are_cut_also_late_ones_and_if_little_memory_may_be_used(
    windows: str, tmp_path: Path
) -> None:
    history = [(f"k{n % 50}", n, 0 if n % 9 == 0 else n) for n in range(400)]
    source = memory({"in": [lines(history)]}, {"out": 1})
    make = partial(application, "numbers", windows, statestore_uncommitted_max_bytes=4_000)
    whole = everything(Backfill(make(), source, tmp_path / "whole", commit_records=90).run())
    executor = InShares()
    cut = Backfill(make(), source, tmp_path / "cut", commit_records=90, executor=executor).run()
    assert executor.cut == {(0, 0)}
    found = everything(cut)
    assert found["changelogs"] == whole["changelogs"]
    assert found["offsets"] == whole["offsets"]
    assert found["slices"] == whole["slices"]
    # A share holds more of its results than the whole task does, so it writes fewer of them twice.
    assert last_values(found["sinks"]) == last_values(whole["sinks"])


def summing(add: Any) -> App:
    app = App("sums")
    windowed = app.stream("in", key=str, value=int).group_by_key().windowed_by(TimeWindows.tumbling(100))
    totals = windowed.reduce(add, name="sums").to_stream()
    totals.map(lambda key, total: (f"{key.key}@{key.start}", total), key=str, value=int).to("out")
    return app


@pytest.mark.usefixtures("few_are_many", "same_workers")
def test_a_partition_with_most_records_keeps_all_processes_busy_also_if_one_dies(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    processes = TwoProcesses(tmp_path)

    def add(one: int, two: int) -> int:
        processes.seen(two)
        return one + two

    caplog.set_level(logging.INFO)
    whole = Backfill(summing(add), memory(HOT, {"out": 2}), tmp_path / "whole").run()
    assert processes.pids() == [os.getpid()]
    two = ProcessExecutor(processes=2)
    cut = Backfill(summing(add), memory(HOT, {"out": 2}), tmp_path / "cut", executor=two).run()
    assert processes.killed.exists()
    assert caplog.text.count("its task is begun again") == 1
    assert "sums, slice 1 of 1: task 0 has most records, and is computed in 2 shares" in caplog.text
    compare(everything(cut), everything(whole))


@pytest.mark.usefixtures("few_are_many", "same_workers")
def test_a_task_that_cannot_be_cut_is_computed_in_one_piece(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    past = {"in": [[*HOT["in"][0], *lines([("a", None, 1_000)])], HOT["in"][1]]}
    one = Backfill(summing(max), memory(past, {"out": 2}), tmp_path / "one").run()
    two = ProcessExecutor(processes=2)
    cut = Backfill(summing(max), memory(past, {"out": 2}), tmp_path / "cut", executor=two).run()
    assert everything(cut) == everything(one)
    assert (
        "sums, slice 1 of 1: task 0 is computed by one process: some of its records cannot be processed in "
        "columns: in-0 offsets"
    ) in caplog.text


def ranges(*records: int) -> list[InputRange]:
    return [InputRange(TopicPartition("in", number), 5, 5 + count) for number, count in enumerate(records)]


def one_slice(tasks: int, upstream: tuple[int, ...] = ()) -> Slice:
    return Slice(0, 0, tasks, (SliceInput("in", tasks, upstream),), None, True, {"s": None}, (), ())


@pytest.mark.parametrize(
    ("records", "processes", "expected"),
    [
        ((900_000, 50_000, 50_000), 2, {0: 2}),
        ((900_000, 50_000, 50_000), 4, {0: 4}),
        ((500_000, 500_000), 2, {}),
        ((580_000, 420_000), 2, {}),
        ((500_000, 500_000), 8, {0: 4, 1: 4}),
        ((1_000_000,), 3, {0: 3}),
        ((90_000, 10), 2, {}),
        ((0, 0), 2, {}),
    ],
)
def test_as_many_shares_as_keep_all_processes_busy(
    records: tuple[int, ...], processes: int, expected: dict[int, int]
) -> None:
    found = shares_of(one_slice(len(records)), ranges(*records), processes)
    assert found == expected


def test_only_what_reads_from_outside_is_cut() -> None:
    assert shares_of(one_slice(1, (0,)), ranges(900_000), 2) == {}
