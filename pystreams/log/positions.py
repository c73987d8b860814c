"""The places in a topic where reading starts and ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from pystreams.broker.port import Admin, Consumer, TopicDescription
from pystreams.clock import Deadline, SystemClock
from pystreams.errors import ConfigError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from pystreams.log.topics import chosen_partitions
from pystreams.nearest import did_you_mean
from pystreams.record import RecordBatch
from pystreams.times import read_time, to_ms

#: ``earliest``, ``latest``, an event time (a datetime, ms, ISO 8601), -N for N records before the end of each
#: partition, or offsets by partition.
Place: TypeAlias = str | int | datetime | Mapping[int, int]

_POLL_MS: Final = 200.0


def positions_at(
    admin: Admin, partitions: Sequence[TopicPartition], place: Place
) -> dict[TopicPartition, int]:
    """The offset of a place in each partition; offsets by partition leave out the partitions that they do not name.

    Raises ``ConfigError`` for an invalid place, or one that is not in the log.
    """
    if isinstance(place, Mapping):
        return _given_offsets(admin, [p for p in partitions if p.partition in place], place)
    if place == "latest":
        return admin.end_offsets(partitions)
    first = admin.beginning_offsets(partitions)
    if place == "earliest":
        return first
    number = _number_of(place)
    if number < 0:
        end = admin.end_offsets(partitions)
        return {p: max(first[p], end[p] + number) for p in partitions}
    return admin.offsets_for_times(dict.fromkeys(partitions, number))


def check_place(place: Place, topic: TopicDescription) -> None:
    """Raise ``ConfigError`` for an invalid place, as far as this can be checked without reading the topic."""
    if isinstance(place, Mapping):
        chosen_partitions(topic, place.keys())
    elif place not in ("earliest", "latest"):
        _number_of(place)


def read_batches(
    consumer: Consumer,
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int] | None,
    idle_timeout_ms: float | None = None,
) -> Iterator[RecordBatch]:
    """The batches between ``starts`` and ``ends``; without ends for ever, or until none arrives for this time."""
    waiting = {p for p, start in starts.items() if ends is None or start < ends[p]}
    consumer.assign({p: starts[p] for p in waiting})
    clock = SystemClock()
    idle = None if idle_timeout_ms is None else Deadline(clock, idle_timeout_ms)
    while waiting:
        poll_ms = _POLL_MS if idle is None else min(_POLL_MS, idle.remaining_ms())
        try:
            batches = consumer.poll(poll_ms)
        except OffsetOutOfRangeError as error:
            error.hint = "the records were deleted while the topic was read: read it again"
            error.extend(where="reading")
            raise
        for batch in batches:
            yield batch if ends is None else batch.before(ends[TopicPartition(batch.topic, batch.partition)])
        if ends is not None:
            done = {p for p in waiting if consumer.position(p) >= ends[p]}
            consumer.unassign(done)
            waiting -= done
        if idle_timeout_ms is not None and idle is not None:
            if batches:
                idle = Deadline(clock, idle_timeout_ms)
            elif idle.expired():
                return


def _number_of(place: object) -> int:
    """The place as an int: ms since the epoch, or the negative number of records before the end."""
    if isinstance(place, int | datetime) and not isinstance(place, bool):
        return to_ms(place)
    if isinstance(place, str) and (place[:1].isdigit() or (place[:1] == "-" and place[1:].isdigit())):
        return read_time(place)
    near = did_you_mean(place, ["earliest", "latest"]) if isinstance(place, str) else ""
    raise ConfigError(
        f"{place!r} is not a place in a topic", hint=near or "give earliest, latest, a time, or -N"
    )


def _given_offsets(
    admin: Admin, partitions: Sequence[TopicPartition], offsets: Mapping[int, int]
) -> dict[TopicPartition, int]:
    starts, ends = admin.beginning_offsets(partitions), admin.end_offsets(partitions)
    found = {}
    for partition in partitions:
        offset = offsets[partition.partition]
        if not starts[partition] <= offset <= ends[partition]:
            raise ConfigError(
                f"Offset {offset} is not in the log",
                where=f"topic-partition {partition}",
                why=f"the log has offsets {starts[partition]} to {ends[partition]} (exclusive)",
            )
        found[partition] = offset
    return found
