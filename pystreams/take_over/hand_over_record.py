"""Checks that the hand-over of a backfill is complete before the application continues from it.

A hand-over first writes a record that it has begun, to a separate topic. Then it writes the changelogs of all stores.
Last, it commits the input offsets and a record that it is complete in one transaction. So an application notices here
that a hand-over is incomplete, and does not start.

The check runs once before the start, so that users see the error at once, and again in each thread that has joined the
group and is about to open its first task. So if a hand-over and an application begin at the same time, at least one of
them notices the other: the hand-over writes its record and then looks for members; the application joins and then reads
the record.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pystreams.broker.port import Admin, Broker, CommittedOffset
from pystreams.clock import Clock
from pystreams.errors import OffsetOutOfRangeError, StateError, TopologyError
from pystreams.ids import TopicPartition
from pystreams.topics.committed_batches import SilentPartitionError, last_value
from pystreams.topology.built import BuiltTopology
from pystreams.topology.fingerprint import first_difference, shape

FORMAT_VERSION: Final = 2
MANIFEST_KEY: Final = b"manifest"

#: The time to wait for the last transaction of a hand-over. If the hand-over was killed during this transaction, it
#: stays open for longer.
_READ_TIMEOUT_MS: Final = 10_000.0


def manifest_topic(application_id: str) -> str:
    """The topic with the record of an application's last hand-over: one partition, compacted."""
    return f"{application_id}-backfill-manifest"


@dataclass(frozen=True, slots=True)
class HandOverRecord:
    """The record of a hand-over. ``attempt`` identifies this hand-over, ``backfill_id`` the backfill; ``offsets`` are
    the offsets that it commits, ``manifest`` is that of the backfill, as JSON; ``emitted`` counts the records that were
    written to output topics, None if none were to be written."""

    backfill_id: str
    attempt: str
    complete: bool
    fingerprint: str
    shape: Any
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    manifest: str = ""
    emitted: Mapping[str, int] | None = None

    def to_bytes(self) -> bytes:
        """The record as compressed JSON: uncompressed, thousands of partitions would exceed the maximum size of a
        record."""
        content = {
            "format": FORMAT_VERSION,
            "backfill_id": self.backfill_id,
            "attempt": self.attempt,
            "complete": self.complete,
            "fingerprint": self.fingerprint,
            "shape": self.shape,
            "offsets": [[*partition, offset] for partition, offset in sorted(self.offsets.items())],
            "manifest": self.manifest,
            "emitted": self.emitted,
        }
        return zlib.compress(json.dumps(content).encode())

    def lost(self, committed: Collection[TopicPartition]) -> list[TopicPartition]:
        """The partitions, sorted, for which it committed an offset that does not exist any more."""
        return sorted(set(self.offsets).difference(committed))

    @classmethod
    def from_bytes(cls, packed: bytes, where: str) -> HandOverRecord:
        """Raises ``StateError`` for bytes that are not such a record, or have another format."""
        try:
            content = json.loads(zlib.decompress(packed))
            version = content["format"]
            if version == FORMAT_VERSION:
                return cls(
                    content["backfill_id"],
                    content["attempt"],
                    content["complete"],
                    content["fingerprint"],
                    content["shape"],
                    {TopicPartition(topic, p): offset for topic, p, offset in content["offsets"]},
                    content["manifest"],
                    content["emitted"],
                )
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise StateError(
                "the topic of the hand-over has a record that is not a record of a hand-over",
                where=where,
                why=f"{type(error).__name__}: {error}",
                hint="another program may have written to the topic: delete the topic, and hand over again",
            ) from error
        raise StateError(
            f"the record of a hand-over has format {version}, this version of pystreams reads {FORMAT_VERSION}",
            where=where,
            hint="use the version of pystreams that wrote it, or delete the topic and hand over again",
        )


class UnderWayError(StateError):
    """A hand-over is writing its record at this moment, or was killed while it did so."""


def read_record(
    broker: Broker, admin: Admin, application_id: str, clock: Clock, timeout_ms: float | None = None
) -> HandOverRecord | None:
    """The record of the last hand-over to an application; None if there was none.

    Raises ``UnderWayError`` during the last step of a hand-over, ``StateError`` for a record that cannot be read.
    """
    timeout_ms = _READ_TIMEOUT_MS if timeout_ms is None else timeout_ms
    partition = TopicPartition(manifest_topic(application_id), 0)
    try:
        last = last_value(broker, admin, partition, MANIFEST_KEY, clock, timeout_ms)
    except SilentPartitionError as error:
        raise UnderWayError(
            f"another process is handing the result of a backfill over to {application_id}",
            where=f"{partition}, {broker.description}",
            why=f"the last record of the hand-over was not committed within {timeout_ms / 1000:g} s",
            hint="start when the hand-over has ended; if it was killed, hand over again (or wait for a minute, until "
            "its open transaction ends)",
        ) from error
    return None if last is None else HandOverRecord.from_bytes(last, f"{partition}, {broker.description}")


def state_origin(broker: Broker, attempt: str) -> str:
    """The origin that local state must have to be used: the log, and the last hand-over to the application."""
    return f"{broker.log_id} {attempt}".rstrip()


class HandOverCheck:
    """The check before the tasks of a client are opened. Threads may share it."""

    def __init__(self, broker: Broker, admin: Admin, built: BuiltTopology, clock: Clock) -> None:
        self._broker = broker
        self._admin = admin
        self._built = built
        self._clock = clock
        #: The hand-over that the last check has found; empty: there was none. Local state from before it is stale.
        self.attempt = ""

    def check(self) -> None:
        """Raises ``StateError`` for a hand-over that is not complete, ``OffsetOutOfRangeError`` for one whose offsets
        are gone, ``TopologyError`` for one whose topology is not this application's. Once the application has committed
        after the hand-over, its topology may change as usual."""
        application_id = self._built.application_id
        record = read_record(self._broker, self._admin, application_id, self._clock)
        if record is None:
            self.attempt = ""
            return
        where = f"application {application_id}, {self._broker.description}"
        if not record.complete:
            raise StateError(
                "the hand-over of a backfill is incomplete",
                where=where,
                why=f"the hand-over of backfill {record.backfill_id} has begun to write the changelogs, and has not "
                "finished",
                hint="hand it over again (pystreams backfill ... --resume), hand over another backfill, or reset the "
                "application (pystreams reset)",
            )
        committed = self._admin.group_offsets(application_id)
        self._require_offsets(record, committed, where)
        if record.fingerprint != self._built.fingerprint and not _went_on(record, committed):
            difference = first_difference(record.shape, shape(self._built))
            raise TopologyError(
                "a backfill was handed over to a different version of the application",
                where=where,
                why=difference or f"its fingerprint is {self._built.fingerprint}, not {record.fingerprint}",
                hint="start the version that was backfilled, or run a backfill with this one",
            )
        self.attempt = record.attempt

    def _require_offsets(
        self, record: HandOverRecord, committed: Collection[TopicPartition], where: str
    ) -> None:
        """Raise an error if offsets are missing: without them the application would begin again, and count records that
        its stores already include."""
        read = self._built.subtopologies
        lost = [p for p in record.lost(committed) if any(sub.source_for(p.topic) for sub in read)]
        if lost:
            raise OffsetOutOfRangeError(
                "the offsets that a backfill has handed over are gone",
                where=where,
                why=f"{len(lost)} partitions have no committed offset, among them {lost[0]}: Kafka deletes the offsets "
                "of a group without members after offsets.retention.minutes (7 days)",
                hint="hand over again (pystreams backfill ... --resume): the application then starts again from the "
                "end of the backfill; or reset the application (pystreams reset)",
            )


def _went_on(record: HandOverRecord, committed: Mapping[TopicPartition, CommittedOffset]) -> bool:
    """Whether the application has committed since the hand-over."""
    return any(
        partition in committed and committed[partition].offset != offset
        for partition, offset in record.offsets.items()
    )
