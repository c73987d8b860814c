"""Asks the stream threads of this process where the partitions of a store are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pystreams.runtime.group.membership_data import Places
from pystreams.runtime.queries.placing import Found
from pystreams.runtime.threads.stream_thread import StreamThread


def owners_in(subtopology: int, threads: Iterable[StreamThread]) -> dict[int, str]:
    """The member that has each partition of a sub-topology, as its last assignment says."""
    owners: dict[int, str] = {}
    for thread in threads:
        owners |= thread.owners_of(subtopology)
    return owners


def found_in(subtopology: int, threads: Sequence[StreamThread], here: Collection[int]) -> Found:
    """The places of the partitions of a sub-topology, some of which are ``here``."""
    given = {
        task.partition
        for thread in threads
        if (tasks := thread.tasks) is not None
        for task in tasks.task_ids()
        if task.subtopology == subtopology
    }
    return Found(here, given.difference(here), owners_in(subtopology, threads))


def places_in(subtopology: int, threads: Iterable[StreamThread], partitions: int) -> dict[int, Places]:
    """The hosts that have each partition of a sub-topology or follow it, according to the last assignments."""
    places = {partition: Places() for partition in range(partitions)}
    for thread in threads:
        places |= thread.places_of(subtopology)
    return places
