"""Reads the overflow records of commits: the metadata that did not fit beside the offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Final, TypeAlias

from pystreams.broker.port import Admin, Broker
from pystreams.clock import Clock, Deadline
from pystreams.engine.dense_numbers import unpack_numbers
from pystreams.engine.offset_metadata import merge_committed
from pystreams.engine.overflow import OverflowReference, digest_of
from pystreams.errors import BrokerUnavailableError, StateError
from pystreams.ids import TopicPartition
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.client_context import ClientContext

_POLL_MS: Final = 50.0
_SILENCE_MS: Final = 15_000.0

OverflowNumbers: TypeAlias = "Mapping[OverflowReference, Mapping[str, int]]"


def find_overflow(tasks: Sequence[ActiveTask], context: ClientContext) -> None:
    """Read the overflow records of the last commits of tasks. Raises the errors of ``read_overflow``."""
    of_task = {task.task_id: merge_committed(task.last_commit).overflow for task in tasks}
    references = {reference for found in of_task.values() for reference in found}
    numbers = read_overflow(
        context.broker, context.admin, context.built.application_id, references, context.clock
    )
    for task in tasks:
        found = of_task[task.task_id]
        task.overflow_numbers = {reference: numbers[reference] for reference in found}
        if task.overflow is not None:
            task.overflow.go_on(found)


def read_overflow(
    broker: Broker,
    admin: Admin,
    application_id: str,
    references: Collection[OverflowReference],
    clock: Clock,
) -> OverflowNumbers:
    """The numbers in the records that committed offsets refer to.

    Raises ``StateError`` for a record that is not there any more, ``BrokerUnavailableError`` if nothing arrives.
    """
    if not references:
        return {}
    places: dict[TopicPartition, list[OverflowReference]] = defaultdict(list)
    for reference in references:
        places[reference.place(application_id)].append(reference)
    counts = admin.partition_counts()
    for place, referring in places.items():
        if place.topic not in counts:
            raise _gone(place, referring[0], "the topic does not exist")
    ends, beginnings = admin.end_offsets(places), admin.beginning_offsets(places)
    starts = {
        place: min(max(beginnings[place], min(one.first_offset for one in referring)), ends[place])
        for place, referring in places.items()
    }
    wanted = {place: {one.digest for one in referring} for place, referring in places.items()}
    values = _read(broker, starts, ends, wanted, clock)
    numbers: dict[OverflowReference, Mapping[str, int]] = {}
    for place, referring in places.items():
        for reference in referring:
            value = values.get((place, reference.digest))
            if value is None:
                why = f"the committed offsets refer to it, and offsets {starts[place]} to {ends[place]} do not hold it"
                raise _gone(place, reference, why)
            numbers[reference] = unpack_numbers(value)
    return numbers


def _read(
    broker: Broker,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    wanted: Mapping[TopicPartition, set[int]],
    clock: Clock,
) -> dict[tuple[TopicPartition, int], bytes]:
    """The values with the wanted digests."""
    found: dict[tuple[TopicPartition, int], bytes] = {}
    # A restore consumer, because it does not read uncommitted records.
    with closing(broker.consumer("overflow-reader", "restore")) as consumer:
        consumer.assign(starts)
        silence = Deadline(clock, _SILENCE_MS)
        while missing := [
            place
            for place, digests in wanted.items()
            if any((place, digest) not in found for digest in digests)
            and consumer.position(place) < ends[place]
        ]:
            batches = consumer.poll(_POLL_MS)
            if batches:
                silence = Deadline(clock, _SILENCE_MS)
            elif silence.expired():
                raise BrokerUnavailableError(
                    "what the steps of a task remember cannot be read in time",
                    where=f"{missing[0]}, position {consumer.position(missing[0])} of {ends[missing[0]]}",
                    why=f"nothing arrived for {_SILENCE_MS / 1000:g} s: a broker is down, or a transaction is open",
                )
            for batch in batches:
                place = TopicPartition(batch.topic, batch.partition)
                for value in batch.values:
                    if value is not None and (digest := digest_of(value)) in wanted[place]:
                        found[place, digest] = value
    return found


def _gone(place: TopicPartition, reference: OverflowReference, why: str) -> StateError:
    return StateError(
        "what the steps of a task remember of their last commit is gone",
        where=f"{place}, a record at offset {reference.first_offset} or later",
        why=why,
        hint="without it closed windows would open again, so the application does not start: restore the topic, or "
        "reset the application (pystreams reset)",
    )
