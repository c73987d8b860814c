"""Finds the places of a store's partitions: in this process, from its stream threads, or elsewhere, from the data that
the group has sent."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pystreams.runtime.group.membership_data import Places, Whereabouts
from pystreams.runtime.queries.placing import Found
from pystreams.runtime.threads.stream_thread import StreamThread


def found_in(
    subtopology: int, threads: Sequence[StreamThread], here: Collection[int], whereabouts: Whereabouts
) -> Found:
    """The places of the partitions of a sub-topology, some of which are ``here``."""
    given = {
        task.partition
        for thread in threads
        if (tasks := thread.tasks) is not None
        for task in tasks.task_ids()
        if task.subtopology == subtopology
    }
    return Found(here, given.difference(here), whereabouts.owners_of(subtopology))


def places_in(subtopology: int, partitions: int, whereabouts: Whereabouts) -> dict[int, Places]:
    """For each partition of a sub-topology the hosts that have it or follow it, as last sent by the group."""
    return {partition: Places() for partition in range(partitions)} | whereabouts.places_of(subtopology)
