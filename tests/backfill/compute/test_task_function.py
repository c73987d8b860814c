"""The stage function alone, as a cluster calls it: pickled work in another process, rows sorted by name."""

from __future__ import annotations

import multiprocessing
import pickle
import random
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pystreams.backfill.application import NamedApplication
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.task import TaskWork, run_task
from pystreams.backfill.exchange.order import ORDER
from pystreams.backfill.exchange.rows import EXCHANGE_SCHEMA, Kind, of_kind, pc, upstream_id
from pystreams.backfill.exchange.task_outcome import TaskOutcome, outcome_row
from pystreams.backfill.staging.port import Selection
from pystreams.errors import TopologyError
from tests.backfill.kit import Backfill, memory
from tests.backfill.programs import PROGRAMS, history


def work_of(backfill: Backfill, index: int) -> TaskWork:
    manifest = backfill.manifest
    return TaskWork(
        application=backfill.application,
        fingerprint=backfill.plan.fingerprint,
        slice=backfill.plan.slices[index],
        partitions=backfill.plan.partitions,
        widest=backfill.plan.widest,
        ranges=manifest.inputs,
        commit_records=manifest.commit_records,
        cache_max_bytes=manifest.cache_max_bytes,
        cut_time_ms=manifest.cut_time_ms,
        folded=manifest.folded,
        combined=manifest.combined,
    )


def shuffled_input(backfill: Backfill, result: BackfillResult, index: int, task: int, seed: int) -> list[Any]:
    """What a shuffle brings to a task, sorted by the names that a cluster sorts by, in batches of its own choice."""
    one = backfill.plan.slices[index]
    batches: list[Any] = []
    if one.carried_from is not None:
        batches.append(outcome_row(result.outcome(backfill.plan.slices[one.carried_from], task), task))
        for store in one.stores:
            batches += result.rows(Selection(Kind.STATE, store, (one.carried_from,), one.tasks), task)
    for input in one.inputs:
        if input.internal:
            selection = Selection(Kind.RECORD, input.topic, input.upstream, input.partitions)
            batches += result.rows(selection, task)
    table = pa.Table.from_batches(batches, EXCHANGE_SCHEMA)
    places = list(range(table.num_rows))
    random.Random(seed).shuffle(places)
    ordered = table.take(places).sort_by([(name, "ascending") for name in ORDER])
    return list(ordered.combine_chunks().to_batches(max_chunksize=11))


def outcome_of(rows: list[Any]) -> TaskOutcome:
    assert [batch.num_rows for batch in rows if of_kind(batch, Kind.OUTCOME).num_rows] == [1]
    return TaskOutcome.from_json(rows[-1].column("value")[0].as_py())


@pytest.mark.parametrize("name", ["word count", "two repartitions", "self-joined"])
def test_sorted_rows_give_what_the_inline_run_gave(name: str, tmp_path: Path) -> None:
    backfill = Backfill(
        PROGRAMS[name](), memory(history(name, 3, 2)), tmp_path / "staging", commit_records=16
    )
    result = backfill.run()
    for one in backfill.plan.slices[1:]:
        for task in range(one.tasks):
            rows = list(
                run_task(
                    work_of(backfill, one.index), task, shuffled_input(backfill, result, one.index, task, 1)
                )
            )
            assert outcome_of(rows).to_json() == result.outcome(one, task).to_json()
            assert all(batch.schema == EXCHANGE_SCHEMA for batch in rows)
            records = pa.Table.from_batches([of_kind(batch, Kind.RECORD) for batch in rows], EXCHANGE_SCHEMA)
            staged = [
                batch.filter(pc.equal(batch.column("upstream"), upstream_id(one.subtopology, task)))
                for partition in result.outcome(one, task).written
                for batch in result.rows(
                    Selection(Kind.RECORD, partition.topic, (one.index,), one.tasks), partition.partition
                )
            ]
            by = [("topic", "ascending"), ("partition", "ascending"), ("sequence", "ascending")]
            assert records.sort_by(by).equals(pa.Table.from_batches(staged, EXCHANGE_SCHEMA).sort_by(by))


def in_worker(pickled: bytes, task: int, batches: list[Any]) -> bytes:
    """What a worker process does."""
    return outcome_of(list(run_task(pickle.loads(pickled), task, batches))).to_json()


def test_pickled_work_runs_in_another_process(tmp_path: Path) -> None:
    named = NamedApplication("tests.backfill.named:app")
    backfill = Backfill(named, memory(history("word count", 3, 2)), tmp_path / "staging", commit_records=16)
    result = backfill.run()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        rows = shuffled_input(backfill, result, 1, 1, 2)
        told = pool.submit(in_worker, pickle.dumps(work_of(backfill, 1)), 1, rows).result(timeout=60)
    assert told == result.outcome(backfill.plan.slices[1], 1).to_json()


def test_a_worker_with_another_topology_refuses(tmp_path: Path) -> None:
    backfill = Backfill(PROGRAMS["word count"](), memory(history("word count", 3, 1)), tmp_path / "staging")
    backfill.application = NamedApplication("tests.backfill.named:app", {"application_id": "other"})
    with pytest.raises(TopologyError, match="not the one that this backfill was planned for"):
        list(run_task(work_of(backfill, 0), 0, []))


def test_a_stage_that_is_given_up_leaves_no_files(tmp_path: Path) -> None:
    backfill = Backfill(PROGRAMS["word count"](), memory(history("word count", 3, 2)), tmp_path / "staging")
    result = backfill.run()
    work = work_of(backfill, 1)
    rows = shuffled_input(backfill, result, 1, 0, 1)
    running: Any = run_task(work, 0, rows, work_dir=str(tmp_path / "work"))
    next(running)
    assert list((tmp_path / "work").iterdir())
    running.close()
    assert not list((tmp_path / "work").iterdir())
