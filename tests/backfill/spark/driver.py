"""A driver that backfills a topology on a Spark of its own, hands it over, and kills itself at a point of that:

    python -m tests.backfill.spark.driver JOB

JOB is JSON: how the topology is made (trials.Written), the log, the staging folder, and the point: ``before-commit``
(the changelogs hold the result) or ``in-commit`` (offsets and manifest are written, and not committed).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pystreams.backfill import EmbeddedSource, KafkaSource
from pystreams.backfill.handover.hand_over import hand_over
from pystreams.backfill.spark.executor import SparkExecutor
from pystreams.backfill.spark.session import spark_session
from pystreams.broker.embedded import EmbeddedBroker, groups
from pystreams.broker.kafka.admin import KafkaAdmin
from tests.backfill.spark.kinds import SESSION, computed
from tests.backfill.trials import Written


def main() -> None:
    job: dict[str, Any] = json.loads(sys.argv[1])
    trial = Written(**job["written"]).trial(job["first_ms"])
    point = {"before-commit": _die, "in-commit": _die_in_commit}[job["point"]]
    servers = job["bootstrap_servers"]
    with spark_session("local[2]", app_name="dies", conf=SESSION) as session:
        source = EmbeddedSource(f"{job['log']}/log.db") if servers is None else KafkaSource(servers)
        result = computed(trial, source, Path(job["staging"]), SparkExecutor(session))
        with closing(_broker(job["log"], servers)) as broker:
            hand_over(result, broker, before_commit=point)


def _broker(log: str, servers: str | None) -> Any:
    if servers is None:
        return EmbeddedBroker(Path(log) / "log.db")
    from tests.kafka.support import connect

    return connect(servers)


def _die(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_in_commit(*_: Any) -> None:
    """The embedded log has offsets as the last thing in its transaction; with Kafka, the group's members are asked for
    when offsets and manifest are sent."""
    patch.object(groups, "commit_offsets", _die).start()
    patch.object(KafkaAdmin, "group_members", _die).start()


if __name__ == "__main__":
    main()
