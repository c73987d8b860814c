"""Hands a snapshot over, with its databases for the application's state directory on this machine."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.handover.hand_over import HandedOver, hand_over
from pystreams.backfill.snapshot.snapshot_result import open_snapshot
from pystreams.broker.port import Admin, Broker
from pystreams.clock import Clock
from pystreams.errors import StateLockedError
from pystreams.ids import TaskId, TopicPartition
from pystreams.state.disk.directory import StateDirectory
from pystreams.state.sorted_files import install_stores
from pystreams.take_over.hand_over_record import state_origin

log = logging.getLogger(__name__)


def restore_snapshot(
    folder: str | Path,
    application: object,
    broker: Broker,
    *,
    settings: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
) -> HandedOver:
    """Hand a snapshot over to the live application, and put its stores where that keeps them on this machine (its
    ``state_dir``): they need not be restored from the changelogs.

    Raises the errors of ``open_snapshot`` and ``hand_over``.
    """
    result = open_snapshot(folder, application, settings)
    return hand_over(result, broker, clock, before_commit=partial(_install, Path(folder), result, broker))


def _install(folder: Path, result: BackfillResult, broker: Broker, admin: Admin, attempt: str) -> None:
    """Install the stores of the snapshot in the state directory, while the changelogs hold the same entries and the
    application cannot start yet. A task whose directory is in use is skipped: it is restored from its changelogs."""
    config = result.loaded.config
    directory = StateDirectory(config.state_dir, config.application_id)
    origin = state_origin(broker, attempt)
    for one in result.plan.slices:
        specs = result.loaded.built.subtopologies[one.subtopology].stores
        changelogs = {spec.name: one.stores[spec.name] for spec in specs if spec.persistent}
        for task in range(one.tasks) if one.final and changelogs else ():
            id = TaskId(one.subtopology, task)
            partitions = {
                s: TopicPartition(topic, task) for s, topic in changelogs.items() if topic is not None
            }
            ends = admin.end_offsets(list(partitions.values()))
            offsets = {store: ends[partition] for store, partition in partitions.items()}
            try:
                install_stores(folder / str(id), directory.task_directory(id), offsets, origin)
            except StateLockedError as error:
                log.warning("task %s will be restored from its changelogs: %s", id, error)
