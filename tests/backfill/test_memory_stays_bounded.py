"""However much a record brings about and however large a store's entries are, a task keeps a few MiB of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pystreams import App
from pystreams.backfill.compute.external_input import external_queues
from pystreams.backfill.compute.global_tables import GlobalTables
from pystreams.backfill.compute.task import run_task
from pystreams.backfill.exchange.order import merged
from pystreams.backfill.exchange.rows import Arrow, Kind, record_rows
from pystreams.backfill.exchange.store_entries import by_time
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.sources.ranges import InputRange
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.state.task_stores import TaskStores
from tests.backfill.compute.test_task_function import work_of
from tests.backfill.kit import Backfill, everything, lines, memory
from tests.backfill.programs import PROGRAMS, history
from tests.examples import chosen

MIB = 1024 * 1024


def stage(program: App, past: Any, folder: Path, **given: Any) -> Iterator[Arrow]:
    """The first slice's only task, as it gives its rows."""
    backfill = Backfill(program, memory(past), folder, **given)
    work = work_of(backfill, 0)
    batches = merged(external_queues(work, 0, backfill.source, TaskOutcome()))
    return run_task(work, 0, batches, work_dir=str(folder))


def test_a_record_that_becomes_many_large_ones(tmp_path: Path) -> None:
    app = App("grows")
    app.stream("in", key=str, value=int).flat_map_values(
        lambda count: (number.to_bytes(4) * 25_000 for number in range(count))
    ).to("out", key=str, value=bytes)
    past = {"in": [lines([("a", 3_000, 1), ("b", 1, 2)])]}
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    peak = count = 0
    for batch in stage(app, past, tmp_path):
        peak = max(peak, tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes() - before)
        if batch.column("kind")[0].as_py() == Kind.RECORD:
            values = batch.column("value").to_pylist()
            numbers = [int.from_bytes(value[:4]) for value in values]
            assert numbers == [(count + i) % 3_000 for i in range(len(numbers))]
            count += len(values)
            del values
    tracemalloc.stop()
    assert count == 3_001
    # What waits as objects, as much again as rows, and what this test holds; of 300 MB.
    assert peak < 110 * MIB


def test_what_stores_have_not_written_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits are far apart."""
    app = App("many", statestore_cache_max_bytes=0, statestore_uncommitted_max_bytes=MIB)
    app.stream("in", key=str, value=str).group_by_key().reduce(lambda old, new: new, name="last")
    past = {"in": [lines([(str(number), "v" * 2_000, number) for number in range(4_000)], value=str)]}
    commit, sizes = TaskStores.commit, []

    def watched(self: TaskStores, *given: Any) -> None:
        sizes.append(self.uncommitted_bytes)
        commit(self, *given)

    monkeypatch.setattr(TaskStores, "commit", watched)
    rows = list(stage(app, past, tmp_path, commit_records=1_000_000))
    assert sum(batch.num_rows for batch in rows if batch.column("kind")[0].as_py() == Kind.STATE) == 4_000
    # A step of some hundred records goes beyond it.
    assert MIB <= max(sizes) < 2 * MIB


def test_large_entries_are_handed_on_a_few_at_a_time(tmp_path: Path) -> None:
    app = App("large")
    app.stream("in", key=str, value=str).group_by_key().reduce(lambda old, new: new, name="last")
    past = {"in": [lines([(str(number), "v" * 300_000, number) for number in range(40)], value=str)]}
    sizes = [
        (batch.num_rows, batch.nbytes)
        for batch in stage(app, past, tmp_path)
        if batch.column("kind")[0].as_py() == Kind.STATE
    ]
    assert sum(rows for rows, _ in sizes) == 40
    assert max(nbytes for _, nbytes in sizes) < 2 * MIB


class ManyRows:
    """A source of a global topic's partition that is made as it is read: 120 MB."""

    description = "many rows"

    def read(self, input: InputRange) -> Iterator[Arrow]:
        for start in range(input.start, input.end, 1_000):
            numbers = range(start, start + 1_000)
            keys: list[bytes | None] = [b"k%d" % number for number in numbers]
            values: list[bytes | None] = [b"v" * 2_000] * 1_000
            yield record_rows(
                RecordBatch(*input.partition, keys, values, [5] * 1_000, list(numbers), None, start + 1_000)
            )


def test_a_large_global_table(tmp_path: Path) -> None:
    past = {"names": [lines([("k1", "a", 5)], value=str)], "amounts": [lines([("x", 1, 10)])]}
    backfilled = Backfill(PROGRAMS["joined globally"](), memory(past), tmp_path / "staging")
    ranges = [InputRange(TopicPartition("names", 0), 0, 60_000)]
    source: Any = ManyRows()
    tables = GlobalTables(backfilled.loaded, ranges, source, 0, shared=tmp_path, own=tmp_path / "own")
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    with closing(tables):
        tables.open_for(backfilled.loaded.built.subtopologies[0].nodes)
        peak = tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes() - before
        tracemalloc.stop()
        (name,) = tables
        assert tables[name].get("k59999").value == "v" * 2_000
    assert peak < 15 * MIB


def test_many_versions_in_the_order_of_time(tmp_path: Path) -> None:
    tracemalloc.start()
    entries = ((b"k%d" % number, b"v" * 2_000, -number % 30_000) for number in range(30_000))
    count, latest = 0, -1
    for _, value, time_ms in by_time(entries, tmp_path, max_bytes=4 * MIB):
        assert value is not None
        assert latest <= time_ms
        count, latest = count + 1, time_ms
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 30_000
    # What is sorted at once, and the blocks that are read; of 60 MB.
    assert peak < 45 * MIB


CASES = chosen(
    product(PROGRAMS, [0, 600, 1_000_000]),
    lambda case: case[1] == 600 or case[0] in ("windowed sum", "joined versions"),
)


@pytest.mark.parametrize(("name", "cache"), CASES)
def test_when_stores_write_changes_nothing(name: str, cache: int, tmp_path: Path) -> None:
    def run(uncommitted_bytes: int) -> Any:
        program = PROGRAMS[name](
            statestore_cache_max_bytes=cache, statestore_uncommitted_max_bytes=uncommitted_bytes
        )
        past = memory(history(name, 5, partitions=2))
        folder = tmp_path / str(uncommitted_bytes)
        # What folds holds as much as fits, and emits what does not fit earlier.
        job = Backfill(program, past, folder, commit_records=50, batch_rows=3, exact_updates=True)
        return everything(job.run())

    assert run(1) == run(64 * MIB)
