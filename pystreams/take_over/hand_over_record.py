"""Whether what a backfill has handed over is whole, before the application goes on from it.

A hand-over writes the changelogs of all stores and then, in one step, the input offsets and that it is complete. The
record that says so lies in a topic of its own; a record that says less was written before the first change. So an
application that would start on half of a hand-over finds out here.

It is asked once before the start, so that people are told at once, and again by each thread that has joined the group
and is about to open its first task. Of a hand-over and an application that begin at the same time at least one notices
the other then: the hand-over writes first and looks for members after that, the application joins first and reads.
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

#: How long a hand-over's last step may take while we look at it. Who was killed within it leaves it open for longer.
_READ_TIMEOUT_MS: Final = 10_000.0


def manifest_topic(application_id: str) -> str:
    """Where the record of an application's last hand-over is: one partition, compacted."""
    return f"{application_id}-backfill-manifest"


@dataclass(frozen=True, slots=True)
class HandOverRecord:
    """What a hand-over tells. ``attempt`` names this hand-over, ``backfill_id`` what is handed over; ``offsets`` are
    those that it commits, ``manifest`` is the backfill's own, as JSON; ``emitted`` counts the records that were written
    to output topics, None if that was not asked for."""

    backfill_id: str
    attempt: str
    complete: bool
    fingerprint: str
    shape: Any
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    manifest: str = ""
    emitted: Mapping[str, int] | None = None

    def to_bytes(self) -> bytes:
        """JSON, compressed: of thousands of partitions it would be larger than a record may be."""
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
        """The partitions for which it committed an offset, and there is none any more, sorted."""
        return sorted(set(self.offsets).difference(committed))

    @classmethod
    def from_bytes(cls, packed: bytes, where: str) -> HandOverRecord:
        """Raises ``StateError`` for what is not such a record, or one of another format."""
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
                "what stands there is not a record of a hand-over",
                where=where,
                why=f"{type(error).__name__}: {error}",
                hint="did somebody else write to the topic? Delete it, and hand over again",
            ) from error
        raise StateError(
            f"the record of a hand-over has format {version}, this version of pystreams reads {FORMAT_VERSION}",
            where=where,
            hint="use the version of pystreams that has handed over, or delete the topic and hand over again",
        )


class UnderWayError(StateError):
    """A hand-over is writing its record at this moment, or was killed within it."""


def read_record(
    broker: Broker, admin: Admin, application_id: str, clock: Clock, timeout_ms: float | None = None
) -> HandOverRecord | None:
    """What the last hand-over to an application told; None if there was none.

    Raises ``UnderWayError`` while the last step of one is under way, ``StateError`` for a record that cannot be read.
    """
    timeout_ms = _READ_TIMEOUT_MS if timeout_ms is None else timeout_ms
    partition = TopicPartition(manifest_topic(application_id), 0)
    try:
        last = last_value(broker, admin, partition, MANIFEST_KEY, clock, timeout_ms)
    except SilentPartitionError as error:
        raise UnderWayError(
            f"somebody is handing the result of a backfill over to {application_id}",
            where=f"{partition}, {broker.description}",
            why=f"its last record was not committed within {timeout_ms / 1000:g} s",
            hint="start when that has ended; if it was killed, hand over again (or wait for a minute: what it "
            "left open ends then)",
        ) from error
    return None if last is None else HandOverRecord.from_bytes(last, f"{partition}, {broker.description}")


def state_origin(broker: Broker, attempt: str) -> str:
    """What local state must follow to be gone on with: the log, and the last hand-over to the application."""
    return f"{broker.log_id} {attempt}".rstrip()


class HandOverCheck:
    """Asked before the tasks of a client are opened. Threads may share it."""

    def __init__(self, broker: Broker, admin: Admin, built: BuiltTopology, clock: Clock) -> None:
        self._broker = broker
        self._admin = admin
        self._built = built
        self._clock = clock
        #: Names the last hand-over as of the last check; empty: there was none. Local state of before is stale.
        self.attempt = ""

    def check(self) -> None:
        """Raises ``StateError`` for a hand-over that is not complete, ``OffsetOutOfRangeError`` for one whose offsets
        are gone, ``TopologyError`` for one whose topology is not this application's. Once the application has gone on
        from there, its topology may change as it always may."""
        application_id = self._built.application_id
        record = read_record(self._broker, self._admin, application_id, self._clock)
        if record is None:
            self.attempt = ""
            return
        where = f"application {application_id}, {self._broker.description}"
        if not record.complete:
            raise StateError(
                "the result of a backfill was handed over in part only",
                where=where,
                why=f"backfill {record.backfill_id} has begun to write the changelogs and not finished",
                hint="hand it over again (pystreams backfill ... --resume), hand another one over, or start afresh "
                "(pystreams reset)",
            )
        committed = self._admin.group_offsets(application_id)
        self._require_offsets(record, committed, where)
        if record.fingerprint != self._built.fingerprint and not _went_on(record, committed):
            difference = first_difference(record.shape, shape(self._built))
            raise TopologyError(
                "the application is not the one that a backfill was handed over to",
                where=where,
                why=difference or f"its fingerprint is {self._built.fingerprint}, not {record.fingerprint}",
                hint="start the application that was backfilled, or backfill this one",
            )
        self.attempt = record.attempt

    def _require_offsets(
        self, record: HandOverRecord, committed: Collection[TopicPartition], where: str
    ) -> None:
        """Without them the application would begin anew, and count once more what its stores have counted."""
        read = self._built.subtopologies
        lost = [p for p in record.lost(committed) if any(sub.source_for(p.topic) for sub in read)]
        if lost:
            raise OffsetOutOfRangeError(
                "the offsets that a backfill has handed over are gone",
                where=where,
                why=f"{len(lost)} partitions have none, among them {lost[0]}: Kafka forgets the offsets of a group "
                "without members after offsets.retention.minutes (7 days)",
                hint="hand over again (pystreams backfill ... --resume): the application is set back to the backfill's "
                "end; or start afresh (pystreams reset)",
            )


def _went_on(record: HandOverRecord, committed: Mapping[TopicPartition, CommittedOffset]) -> bool:
    """The application has committed since."""
    return any(
        partition in committed and committed[partition].offset != offset
        for partition, offset in record.offsets.items()
    )
