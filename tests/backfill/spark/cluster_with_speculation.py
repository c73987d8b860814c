"""A backfill on a standalone cluster that starts slow tasks a second time, handed over to an embedded log:

    python -m tests.backfill.spark.cluster_with_speculation MASTER FOLDER

In the first slice and in publishing, the first attempt of one task waits until the second one is under way: both write.
FOLDER holds ``log/log.db``; the staging folder and the marks are made in it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark import TaskContext

from pystreams import App
from pystreams.backfill import EmbeddedSource
from pystreams.backfill.compute.executor import PartitionFunction
from pystreams.backfill.handover import hand_over as handover
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.handover.publishing import PublishStore
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session
from pystreams.broker.embedded import EmbeddedBroker
from tests.backfill.kit import Backfill
from tests.backfill.spark.kinds import SESSION
from tests.live.support import eventually

#: A copy is started of whatever takes longer than the first task that is done. It has to be on another host.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "600m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}
_COPY_TIMEOUT_S = 90.0


def word_count(marks: Path | None, **settings: Any) -> App:
    def words(line: str) -> list[str]:
        if marks is not None:
            wait_for_copy(marks, "compute")
        return line.split()

    app = App("wc", statestore_cache_max_bytes=0, **settings)
    by_word = app.stream("lines", value=str).flat_map_values(words).group_by(lambda word: word)
    by_word.count(name="counts").to_stream().to("word-counts")
    return app


def wait_for_copy(marks: Path, what: str) -> None:
    """In task 1: its first attempt waits until another one has come here."""
    context = TaskContext.get()
    assert context is not None
    if context.partitionId() != 1:
        return
    copy = marks / f"{what}-copy"
    if context.attemptNumber() > 0:
        copy.touch()
    else:
        eventually(copy.exists, f"a second attempt at {what}", _COPY_TIMEOUT_S)


@dataclass(frozen=True)
class SlowPublish:
    """Its first attempt at partition 1 has written, and commits when the second one is under way."""

    function: PartitionFunction
    marks: Path

    def __call__(self, partition: int, batches: Iterator[Any]) -> bytes:
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() > 0:
            wait_for_copy(self.marks, "publish")
        return self.function(partition, self._rows(batches))

    def _rows(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Asked for more once all is written."""
        yield from batches
        wait_for_copy(self.marks, "publish")


def main() -> None:
    master, folder = sys.argv[1], Path(sys.argv[2])
    settings = {**SESSION, **SPECULATION, "spark.executorEnv.PYTHONPATH": str(Path.cwd())}
    with spark_session(master, app_name="speculation", conf=settings) as session:
        source = EmbeddedSource(str(folder / "log" / "log.db"))
        result = Backfill(
            word_count(folder / "marks"),
            source,
            folder / "staging",
            executor=SparkExecutor(session),
            commit_records=16,
        ).run()

        def slow(*given: Any) -> SlowPublish:
            return SlowPublish(PublishStore(*given), folder / "marks")

        with (
            patch.object(handover, "PublishStore", slow),
            closing(EmbeddedBroker(folder / "log" / "log.db")) as broker,
        ):
            hand_over(result, broker)


if __name__ == "__main__":
    main()
