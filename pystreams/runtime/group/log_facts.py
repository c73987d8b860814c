"""The facts that the leader of a group requests from the log before it assigns tasks: ends of changelogs, and racks.

Source: StreamsPartitionAssignor.populateClientStatesMap, RackAwareTaskAssignor.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pystreams.broker.port import Admin
from pystreams.errors import BrokerError
from pystreams.ids import TaskId, TopicPartition

log = logging.getLogger(__name__)

#: The timeout of a request. It is short, because the whole group waits while the leader waits.
_PATIENCE_MS: Final = 5_000.0

Partitions = Mapping[TaskId, Collection[TopicPartition]]
Racks = Mapping[TaskId, list[frozenset[str]]]


@dataclass(frozen=True, slots=True)
class LogFacts:
    """``changelogs`` are the changelog partitions of tasks, ``sources`` the input partitions that take their place."""

    admin: Admin
    group: str
    changelogs: Partitions
    sources: Partitions

    def end_sums(self, tasks: Collection[TaskId]) -> Mapping[TaskId, int] | None:
        """For each task the sum of the end offsets of its changelogs; an input that takes the place of a changelog
        counts with its committed offset. None: the log did not answer."""
        wanted = [partition for task in tasks for partition in self.changelogs.get(task, ())]
        try:
            ends = dict(self.admin.end_offsets(wanted, _PATIENCE_MS))
            if any(self.sources.get(task) for task in tasks):
                ends |= {
                    p: committed.offset
                    for p, committed in self.admin.group_offsets(self.group, stable=False).items()
                }
        except BrokerError as error:
            log.warning("the lags of tasks are not known, so tasks stay where they are for now: %s", error)
            return None
        return {
            task: sum(
                ends.get(partition, 0)
                for partition in (*self.changelogs.get(task, ()), *self.sources.get(task, ()))
            )
            for task in tasks
        }

    def racks(self, partitions: Partitions) -> Racks:
        """For each task the racks of each of its partitions; empty if the log does not know them."""
        wanted = {partition for of_task in partitions.values() for partition in of_task}
        try:
            racks = self.admin.partition_racks(wanted)
        except BrokerError as error:
            log.warning("the racks of partitions are not known, so they do not matter for now: %s", error)
            return {}
        if not all(racks.get(partition) for partition in wanted):
            return {}
        return {task: [racks[p] for p in sorted(of_task)] for task, of_task in partitions.items()}
