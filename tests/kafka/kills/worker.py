"""``pystreams`` in a process that keeps a journal of what it processes, and may kill itself at a chosen call:

    python -m tests.kafka.kills.worker JOURNAL AIM run apps.flights ...

AIM is ``POINT:N`` (SIGKILL at the N-th passing of a point) or ``none``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from apps.flights import FLIGHTS
from apps.flights_feed import PARTITIONS
from tests.kafka.kills.journal import keep
from tests.kills.aim import RESTORE, Passing, Point, watch

STORE = "delays-by-day"

_TASKS, _STATE, _KAFKA = "pystreams.runtime.tasks", "pystreams.state", "pystreams.broker.kafka"

#: Moments of a commit on Kafka, where outputs, changelogs, offsets and stores become durable one after the other.
COMMIT = {
    "commit-begins": Point("before", f"{_TASKS}.committer", "Committer.commit", 6),
    "caches-of-a-task-flushed": Point("after", "pystreams.engine.hosted_task", "HostedTask.flush", 20),
    "nothing-delivered-yet": Point("before", f"{_KAFKA}.producer", "KafkaProducer.commit", 6),
    "all-delivered": Point("before", f"{_KAFKA}.member", "KafkaMember.commit", 6),
    "offsets-committed": Point("after", f"{_KAFKA}.member", "KafkaMember.commit", 6),
    "store-commit-begins": Point("before", f"{_STATE}.task_stores", "TaskStores.commit", 20),
    "between-slices-of-a-store": Point("before", "rocksdict", "WriteBatch", 60),
    "store-committed": Point("after", f"{_STATE}.task_stores", "TaskStores.commit", 20),
    "commit-ended": Point("after", f"{_TASKS}.committer", "Committer.commit", 6),
}

#: Moments of a rebalance: the join, what comes with a new assignment, and its claim.
REBALANCE = {
    "member-begins": Point("before", f"{_KAFKA}.broker", "KafkaBroker.member", 1),
    "member-made": Point("after", f"{_KAFKA}.broker", "KafkaBroker.member", 1),
    "assignment-comes": Point("before", f"{_TASKS}.task_manager", "TaskManager.assign", 1),
    "task-opened": Point("after", f"{_TASKS}.task_opening", "TaskOpener.open", 1),
    "committed-offsets-read": Point("after", f"{_KAFKA}.member", "KafkaMember.committed", 1),
    "claim-comes": Point("before", f"{_KAFKA}.member", "KafkaMember.claim", 1),
    "claimed": Point("after", f"{_KAFKA}.member", "KafkaMember.claim", 1),
    "assignment-carried-out": Point("after", f"{_TASKS}.task_manager", "TaskManager.assign", 1),
}

#: On Kafka one request may bring all of a changelog.
_BATCH = RESTORE["restore-batch-written"]
RESTORED = {
    name: point._replace(early=PARTITIONS) if point.path == _BATCH.path else point
    for name, point in RESTORE.items()
}

POINTS = {**COMMIT, **RESTORED, **REBALANCE}


def main() -> None:
    journal, aim, *arguments = sys.argv[1:]
    point, _, call = aim.partition(":")
    if point != "none":
        watch(POINTS, Passing(point, int(call)))
    keep(Path(journal), FLIGHTS, STORE)
    from pystreams.cli.main import main as pystreams

    pystreams(arguments)


if __name__ == "__main__":
    main()
