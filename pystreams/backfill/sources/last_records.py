"""Identifies a log later: by the last record before the cut in each input partition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from contextlib import closing
from hashlib import sha256
from typing import Final

from pystreams.backfill.sources.ranges import LastRecord
from pystreams.broker.port import Broker, Consumer
from pystreams.clock import Deadline, SystemClock
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TopicPartition

#: Behind the last record may lie markers of transactions, and holes that compaction left: no more of them are passed.
LOOK_BACK: Final = 1_000
_CLIENT_ID: Final = "pystreams-backfill"
_POLL_MS: Final = 100.0
#: A record that does not arrive within this time counts as not found: an open transaction hides it, or its broker is
#: down.
_SILENCE_MS_MAX: Final = 10_000.0
_DIGEST_CHARACTERS: Final = 16

#: By partition, offsets from the first to before the second.
Spans = Mapping[TopicPartition, tuple[int, int]]


def last_record(offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> LastRecord:
    """A record as the manifest keeps it."""
    digest = sha256()
    for part in (key, value):
        digest.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return LastRecord(offset, timestamp, digest.hexdigest()[:_DIGEST_CHARACTERS])


def difference(last: LastRecord, now: LastRecord) -> str:
    """For people, in what two records of one offset differ."""
    if last.timestamp != now.timestamp:
        return f"its timestamp was {last.timestamp}, now it is {now.timestamp}"
    return "its key or its value was different"


def before(
    ends: Mapping[TopicPartition, int],
    beginnings: Mapping[TopicPartition, int],
    last_within: Callable[[Spans], dict[TopicPartition, LastRecord]],
) -> dict[TopicPartition, LastRecord]:
    """The last record before each offset: mostly it is the one just before."""
    near = {p: (end - 1, end) for p, end in ends.items() if beginnings[p] < end}
    found = last_within(near)
    further = {p: (max(beginnings[p], at - LOOK_BACK), at) for p, (at, _) in near.items() if p not in found}
    return found | last_within({p: span for p, span in further.items() if span[0] < span[1]})


def last_before(broker: Broker, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
    """The last record of a log before each offset, where there is one within ``LOOK_BACK``."""
    with closing(broker.admin()) as admin:
        beginnings = admin.beginning_offsets(list(ends))
    return before(ends, beginnings, lambda spans: last_within(broker, spans))


def last_within(broker: Broker, spans: Spans) -> dict[TopicPartition, LastRecord]:
    """The last record of each span of a log; where there is none, or it does not come in time, nothing."""
    if not spans:
        return {}
    with closing(broker.consumer(_CLIENT_ID)) as consumer:
        consumer.assign({partition: start for partition, (start, _) in spans.items()})
        return _read(consumer, spans)


def _read(consumer: Consumer, spans: Spans) -> dict[TopicPartition, LastRecord]:
    found: dict[TopicPartition, LastRecord] = {}
    waiting = set(spans)
    silence = Deadline(SystemClock(), _SILENCE_MS_MAX)
    while waiting and not silence.expired():
        try:
            batches = consumer.poll(_POLL_MS)
        except OffsetOutOfRangeError:
            # The record was deleted during the search.
            break
        read = set()
        for batch in batches:
            partition = TopicPartition(batch.topic, batch.partition)
            read.add(partition)
            at = bisect_left(batch.offsets, spans[partition][1]) - 1
            if at >= 0:
                found[partition] = last_record(
                    batch.offsets[at], batch.timestamps[at], batch.keys[at], batch.values[at]
                )
        # Without batches, check the positions of all partitions; otherwise only of those that were read, since
        # there may be thousands.
        over = {p for p in (read or waiting) & waiting if consumer.position(p) >= spans[p][1]}
        consumer.unassign(over)
        waiting -= over
        if batches or over:
            silence = Deadline(SystemClock(), _SILENCE_MS_MAX)
    return found
