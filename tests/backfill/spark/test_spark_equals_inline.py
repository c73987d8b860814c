"""E1: on Spark comes out what comes out of an inline run, in bytes: stores, sinks, offsets with their metadata."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.spark.executor import SparkExecutor
from tests.backfill.kit import Backfill, History, Program, everything, memory
from tests.backfill.programs import PROGRAMS, history, word_count
from tests.examples import chosen


def both(
    program: Program, past: History, folder: Path, executor: SparkExecutor, **settings: Any
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What an inline run gives, and Spark."""
    source = memory(past)
    inline = Backfill(program, source, folder / "inline", **settings).run()
    on_spark = Backfill(program, source, folder / "spark", executor=executor, **settings).run()
    return everything(inline), everything(on_spark)


#: To Spark, declared aggregates are functions like others (test_spark_shipping).
NAMES = [name for name in PROGRAMS if name != "declared aggregates"]
#: Further tests compute them on Spark: that of empty partitions below, and that of verifications (test_spark_verify).
ELSEWHERE = {"word count", "joined streams"}


@pytest.mark.parametrize("name", chosen(NAMES, lambda name: name not in ELSEWHERE))
def test_spark_gives_what_an_inline_run_gives(name: str, tmp_path: Path, executor: SparkExecutor) -> None:
    # A cache that holds some of the keys: what it forwards depends on everything that came before.
    program = PROGRAMS[name](statestore_cache_max_bytes=600)
    inline, on_spark = both(program, history(name, 7, partitions=3), tmp_path, executor, commit_records=16)
    assert any(inline["sinks"].values())
    assert on_spark == inline


def test_partitions_without_records_are_tasks_too(tmp_path: Path, executor: SparkExecutor) -> None:
    past = {"lines": [[], *history("word count", 3, 1)["lines"], []]}
    inline, on_spark = both(word_count(), past, tmp_path, executor)
    assert on_spark == inline
    inline, on_spark = both(word_count(), {"lines": [[], []]}, tmp_path / "empty", executor)
    assert on_spark == inline
    assert on_spark["changelogs"] == {"counts": {0: [], 1: []}}


def test_a_function_is_called_for_every_partition_with_its_rows_in_order(
    tmp_path: Path, executor: SparkExecutor
) -> None:
    past = history("word count", 3, 3)
    result = Backfill(word_count(), memory(past), tmp_path / "staging", executor=executor).run()

    def keys(partition: int, batches: Any) -> bytes:
        found = [key for batch in batches for key in batch.column("key").to_pylist()]
        return b"%d: %s" % (partition, b" ".join(found))

    told = result.for_each_partition(result.store_rows("counts"), keys)
    entries = Backfill(word_count(), memory(past), tmp_path / "inline").run().changelog("counts")
    assert told == [b"%d: %s" % (p, b" ".join(entry.key for entry in entries[p])) for p in range(3)]
    staging = executor.staging(str(tmp_path / "staging")).with_slices(result.manifest.folders)
    frame = staging.dataframe(result.sink_rows("word-counts"))
    assert frame.count() == sum(result.written().values())
