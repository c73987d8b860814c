"""Hands a computed backfill over to Kafka, in a process that may kill itself at a chosen call:

    python -m tests.kafka.backfill.backfill_driver BOOTSTRAP_SERVERS FOLDER UNTIL AIM

FOLDER holds the staging folder and the application's state, UNTIL is a time in ms, AIM is ``POINT:N`` (SIGKILL at the
N-th passing of a point).
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from pystreams import App
from pystreams.backfill import InlineExecutor, KafkaSource, backfill
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.executor import Executor
from pystreams.backfill.handover.hand_over import hand_over
from tests.backfill.programs import windowed_sum
from tests.kills.aim import Passing, Point, watch

_KAFKA = "pystreams.broker.kafka"

#: A hand-over of two stores with two partitions: told, four transactions, committed.
POINTS = {
    "told": Point("after", f"{_KAFKA}.group_commit", "KafkaGroupCommitter.commit"),
    "sent": Point("after", f"{_KAFKA}.transactions", "KafkaTransactionalProducer.send"),
    "published": Point("after", f"{_KAFKA}.transactions", "KafkaTransactionalProducer.commit"),
    # Asked before all, and in the last step of both commits.
    "members-asked": Point("after", f"{_KAFKA}.admin", "KafkaAdmin.group_members"),
}


def program(folder: Path) -> App:
    return windowed_sum(
        statestore_cache_max_bytes=0,
        max_task_idle_ms=0,
        commit_interval_ms=100,
        poll_ms=10,
        window_changelog_retention_ms=-1,
        state_dir=folder / "state",
    )


def computed(
    bootstrap_servers: str, folder: Path, until_ms: int, executor: Executor | None = None
) -> BackfillResult:
    """The backfill of the program up to a time; computed once."""
    return backfill(
        program(folder),
        sources=KafkaSource(bootstrap_servers),
        staging=folder / "staging",
        until=until_ms,
        resume=True,
        commit_records=16,
        executor=executor or InlineExecutor(),
    )


def main() -> None:
    from tests.kafka.support import connect

    bootstrap_servers, folder, until_ms, aim = sys.argv[1:]
    point, _, call = aim.partition(":")
    watch(POINTS, Passing(point, int(call)))
    result = computed(bootstrap_servers, Path(folder), int(until_ms))
    with closing(connect(bootstrap_servers)) as broker:
        hand_over(result, broker)


if __name__ == "__main__":
    main()
