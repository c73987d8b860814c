"""``pystreams`` in a process that may kill itself at a chosen call, or has a fault on purpose:

    python -m tests.chaos.worker AIM BREAK run tests.chaos.program ...

AIM is ``POINT:N`` (SIGKILL at the N-th passing of a point) or ``none``; BREAK is one of ``BREAKS`` or ``none``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from tests.kills import aim
from tests.kills.aim import Passing, Point, watch

_TASKS, _STATE, _KAFKA = "pystreams.runtime.tasks", "pystreams.state", "pystreams.broker.kafka"

#: Moments of a commit, exactly once on Kafka.
ON_KAFKA = {
    "caches-of-a-task-flushed": Point("after", "pystreams.engine.hosted_task", "HostedTask.flush", 20),
    "transaction-begins": Point(
        "before", f"{_KAFKA}.exactly_once", "ExactlyOnceProducer._begin_and_produce", 10
    ),
    "offsets-not-added": Point("before", f"{_KAFKA}.exactly_once", "ExactlyOnceProducer._add_offsets", 10),
    "transaction-not-ended": Point(
        "before", f"{_KAFKA}.exactly_once", "ExactlyOnceProducer._end_transaction", 10
    ),
    "transaction-ended": Point("after", f"{_KAFKA}.exactly_once", "ExactlyOnceProducer.commit", 10),
    "store-commit-begins": Point("before", f"{_STATE}.task_stores", "TaskStores.commit", 20),
    "store-committed": Point("after", f"{_STATE}.task_stores", "TaskStores.commit", 20),
    "assignment-comes": Point("before", f"{_TASKS}.task_manager", "TaskManager.assign", 1),
}
#: The same on the embedded log.
EMBEDDED = {**aim.COMMIT, "assignment-comes": ON_KAFKA["assignment-comes"]}
POINTS = {**EMBEDDED, **ON_KAFKA}


def _commit_offsets_outside() -> None:
    """Offsets are committed beside the transaction, before it ends."""
    from pystreams.broker.kafka.exactly_once import ExactlyOnceProducer

    def outside(self: ExactlyOnceProducer, offsets: Mapping[Any, Any], member: Any) -> None:
        member.commit(offsets)

    ExactlyOnceProducer._add_offsets = outside  # type: ignore[method-assign]


def _fence_nobody() -> None:
    """Who takes tasks over leaves the transactions of the dead alone."""
    from pystreams.broker.kafka.broker import KafkaBroker

    KafkaBroker.fence = lambda self, group, tasks: None  # type: ignore[method-assign]


#: What the tests must notice.
BREAKS: Mapping[str, Callable[[], None]] = {
    "offsets-outside": _commit_offsets_outside,
    "nobody-fenced": _fence_nobody,
}


def main() -> None:
    where, broken, *arguments = sys.argv[1:]
    if broken != "none":
        BREAKS[broken]()
    point, _, call = where.partition(":")
    if point != "none":
        watch({point: POINTS[point]}, Passing(point, int(call)))
    from pystreams.cli.main import main as pystreams

    pystreams(arguments)


if __name__ == "__main__":
    main()
