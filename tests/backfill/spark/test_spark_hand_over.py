"""Stores that Spark computed are published, emitted and written as a snapshot by its workers, whichever is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pystreams.backfill.api import backfill
from pystreams.backfill.compute.executor import PartitionFunction
from pystreams.backfill.handover import hand_over as handover
from pystreams.backfill.handover.emit import emit
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.handover.publishing import PublishStore
from pystreams.backfill.snapshot import open_snapshot, write_snapshot
from pystreams.backfill.sources import EmbeddedSource
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.broker.embedded.transactions import EmbeddedTransactionalProducer
from pystreams.errors import StreamsError
from tests.backfill.kit import everything
from tests.backfill.live import append, create
from tests.backfill.programs import history
from tests.backfill.twins import Twins
from tests.live.support import Log


@dataclass(frozen=True)
class KilledOnce:
    """Its worker is killed before it commits what it has written, once: it leaves a file first."""

    function: PartitionFunction
    marker: Path

    def __call__(self, partition: int, batches: Iterator[Any]) -> bytes:
        if partition == 1 and not self.marker.exists():
            self.marker.touch()
            EmbeddedTransactionalProducer.commit = _kill  # type: ignore[method-assign]
        return self.function(partition, batches)


def _kill(producer: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_handed_over_by_workers_it_goes_on_as_live(
    tmp_path: Path, executor: SparkExecutor, new_log: Callable[[str], Log], monkeypatch: pytest.MonkeyPatch
) -> None:
    twins = Twins(new_log, seed=11)
    handed = twins.handed
    source = EmbeddedSource(str(handed.path / "log.db"))
    result = backfill(twins.app, sources=source, staging=tmp_path / "staging", executor=executor)
    assert emit(result, tmp_path / "archive") == emit(result, handed.broker)
    monkeypatch.setattr(
        handover, "PublishStore", lambda *given: KilledOnce(PublishStore(*given), tmp_path / "killed")
    )
    hand_over(result, handed.broker)
    assert (tmp_path / "killed").exists()
    twins.go_on_alike()


def test_a_snapshot_by_workers_holds_what_was_computed(
    tmp_path: Path, executor: SparkExecutor, new_log: Any
) -> None:
    log = new_log("log")
    past = history("word count", 3, 2)
    create(log, past, ["word-counts"])
    append(log, past)
    name = "tests.backfill.named:app"
    source = EmbeddedSource(str(log.path / "log.db"))
    result = backfill(name, sources=source, staging=tmp_path / "staging", executor=executor)
    write_snapshot(result, tmp_path / "snapshot")
    opened = open_snapshot(tmp_path / "snapshot", name)
    computed = everything(result)
    assert everything(opened) == {**computed, "sinks": {}}


def test_a_log_that_a_worker_does_not_find_is_reported(
    tmp_path: Path, executor: SparkExecutor, new_log: Any
) -> None:
    log = new_log("log")
    past = history("word count", 3, 1)
    create(log, past, ["word-counts"])
    append(log, past)
    source = EmbeddedSource(str(log.path / "log.db"))
    result = backfill(
        "tests.backfill.named:app", sources=source, staging=tmp_path / "staging", executor=executor
    )
    opener = log.broker.opener()
    (log.path / "log.db").rename(tmp_path / "elsewhere.db")
    work = PublishStore(opener, "wc", "counts", "wc-counts-changelog", "attempt", 0)
    with pytest.raises(StreamsError, match="There is no embedded log at"):
        result.for_each_partition(result.store_rows("counts"), work)
