"""A backfill on Spark that goes on from an earlier one gives what the same two give inline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill import backfill
from pystreams.backfill.compute.executor import Executor
from pystreams.backfill.compute.inline import InlineExecutor
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.ids import TopicPartition
from tests.backfill.kit import everything, memory
from tests.backfill.programs import PROGRAMS, history


@pytest.mark.parametrize("name", ["word count", "windowed sum"])
def test_it_goes_on_with_stores_offsets_and_times(name: str, tmp_path: Path, executor: SparkExecutor) -> None:
    past = history(name, 8, partitions=2)
    cut = {
        TopicPartition(topic, number): len(records) // 2
        for topic, partitions in past.items()
        for number, records in enumerate(partitions)
    }

    def twice(where: Executor, folder: Path) -> tuple[Any, Any]:
        program, source = PROGRAMS[name](statestore_cache_max_bytes=0), memory(past)
        first = backfill(
            program, sources=source, staging=folder / "1", executor=where, until=cut, commit_records=16
        )
        then = backfill(
            program,
            sources=source,
            staging=folder / "2",
            executor=where,
            previous=folder / "1",
            commit_records=16,
        )
        return everything(first), everything(then)

    assert twice(executor, tmp_path / "spark") == twice(InlineExecutor(), tmp_path / "inline")
