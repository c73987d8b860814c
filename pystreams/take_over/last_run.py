"""The record of the last run: the topology that processed records last, and has written the stored data.

It is written to two places before the first record is processed: to a topic of the application, so that every machine
can read it, and to the state directory, for state that no topic has. The topic has the name of a changelog, one
partition and compaction: every tool that resets the application, Java's included, deletes it with the other changelogs.
"""

from __future__ import annotations

import json
import logging
import threading
import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from pystreams.broker.port import Admin, Broker, TopicSpec, Write
from pystreams.clock import Clock
from pystreams.errors import BrokerError, BrokerUnavailableError, StateError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS
from pystreams.state.begun import Begun
from pystreams.state.disk.directory import StateDirectory
from pystreams.topics.committed_batches import SilentPartitionError, last_value
from pystreams.topology.fingerprint import first_difference
from pystreams.topology.names import changelog_topic

log = logging.getLogger(__name__)

#: The result of ``topology.fingerprint.shape``: a topology as JSON.
Shape: TypeAlias = Sequence[Mapping[str, Any]]

FORMAT_VERSION: Final = 1
_KEY: Final = b"topology"
_TOPIC: Final = {"cleanup.policy": "compact", "retention.ms": "-1"}
_SILENCE_MS: Final = 15_000.0


def topology_topic(application_id: str) -> str:
    """The topic with the record of an application's last run: one partition, compacted."""
    return changelog_topic(application_id, "pystreams-topology")


def topology_topic_spec(application_id: str) -> TopicSpec:
    """The settings with which the topic is created."""
    return TopicSpec(topology_topic(application_id), 1, _TOPIC)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A take-over that has begun: the changelogs of these stores are being deleted or created again. ``attempt`` names
    it."""

    attempt: str
    dropped: tuple[str, ...] = ()
    carried: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LastRun:
    """``topology`` processed records last, or is the topology for which the user has accepted the loss of the stores
    ``accepted``. Stores may still hold content of ``earlier`` topologies. ``begun`` names stores that started empty, or
    took over the content of another name; older local state under their names does not belong to them."""

    topology: Shape
    earlier: tuple[Shape, ...] = ()
    begun: Mapping[str, Begun] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    unfinished: Unfinished | None = None
    #: Stores that were removed, whose changelogs may still exist: a new store of that name must not be restored from
    #: them.
    left_over: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {"topology": self.topology, "earlier": self.earlier}
        content["accepted"] = self.accepted
        content["left_over"] = self.left_over
        content["begun"] = {store: [one.id, one.was] for store, one in self.begun.items()}
        if self.unfinished is not None:
            begun = self.unfinished
            content["unfinished"] = [begun.attempt, begun.dropped, begun.carried]
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LastRun:
        """The record in JSON. Raises ``KeyError``, ``TypeError``, ``ValueError`` for other JSON."""
        unfinished = content.get("unfinished")
        return cls(
            content["topology"],
            tuple(content.get("earlier", ())),
            {store: Begun(*one) for store, one in content.get("begun", {}).items()},
            tuple(content.get("accepted", ())),
            None if unfinished is None else Unfinished(unfinished[0], tuple(unfinished[1]), unfinished[2]),
            tuple(content.get("left_over", ())),
        )

    def followed_by(self, topology: Shape) -> LastRun:
        """The record of the last run after ``topology`` has begun to process records."""
        if topology == self.topology:
            return replace(self, unfinished=None)
        names = {store[0] for part in topology for store in part["stores"]}
        earlier = list(self.earlier)
        before, now = stores_only(self.topology, names), stores_only(topology, names)
        if before != now and before not in earlier:
            earlier.append(before)
        return replace(self, topology=topology, earlier=tuple(earlier), accepted=(), unfinished=None)


def stores_only(shape: Shape, names: Collection[str]) -> Shape:
    """A shape without its steps, and without other stores than these."""
    return [
        {
            **{name: value for name, value in part.items() if name not in ("internal", "copartitioned")},
            **({"internal": {}, "copartitioned": []} if "internal" in part else {}),
            "nodes": [],
            "stores": [store for store in part["stores"] if store[0] in names],
        }
        for part in shape
    ]


class KeptTopology:
    """Reads and writes the record of the last run."""

    def __init__(
        self, broker: Broker, admin: Admin, directory: StateDirectory, application_id: str, clock: Clock
    ) -> None:
        self._broker = broker
        self._admin = admin
        self._directory = directory
        self._application_id = application_id
        self._clock = clock
        self._partition = TopicPartition(topology_topic(application_id), 0)

    def read(self) -> LastRun | None:
        """The record in the topic; otherwise the one in the state directory, if that belongs to the same log. None:
        there was no run yet.

        Raises ``StateError`` for a record that cannot be read, ``BrokerUnavailableError`` while it is being written.
        """
        try:
            packed = last_value(self._broker, self._admin, self._partition, _KEY, self._clock, _SILENCE_MS)
        except SilentPartitionError as error:
            raise BrokerUnavailableError(
                f"another member is changing the stored data of {self._application_id}",
                where=f"{self._partition}, {self._broker.description}",
                why=f"the last record of its topology topic was not committed within {_SILENCE_MS / 1000:g} s",
                hint="start when the other member has started; the open transaction of a killed member ends within a "
                "minute",
            ) from error
        if packed is not None:
            return from_bytes(packed, f"{self._partition}, {self._broker.description}")
        local = self._directory.topology()
        if local is None or local.get("log", self._broker.log_id) != self._broker.log_id:
            return None
        if not local.get("processed", True):
            return None
        if local.get("beginning") not in (None, self.beginning()):
            return None  # the application was reset since, perhaps by another machine
        return LastRun.from_json(local)

    def beginning(self) -> str | None:
        """Identifies the period since the application was created or reset; the same on all machines. None: it is
        unknown.

        A reset deletes the topic with all others, so the next topic of this name has another id.
        """
        return self._admin.topic_id(self._partition.topic)

    def create_topic(self, *, needed: bool) -> None:
        """Create the topic. If that is not permitted, only the state directory has the record; if the topic is
        ``needed``, this raises ``BrokerError``."""
        topic = self._partition.topic
        if topic in self._admin.partition_counts():
            return
        try:
            self._admin.create_topics([topology_topic_spec(self._application_id)])
        except BrokerError as error:
            if needed:
                raise BrokerError(
                    f"the stored data of {self._application_id} cannot be deleted or moved without a record of it",
                    where=self._broker.description,
                    why=f"topic {topic} does not exist, and cannot be created: {error.what}",
                    hint="create the topic (one partition, cleanup.policy=compact), and permit the application to "
                    "write to it",
                ) from error
            log.warning(
                "only this machine knows what this application has stored, because topic %s cannot be created: %s",
                topic,
                error,
            )

    def write(self, last: LastRun) -> None:
        """Write the record to both places."""
        if self._partition.topic in self._admin.partition_counts():
            record = self.record(last)
            with closing(self._broker.producer(f"{self._application_id}-topology")) as producer:
                producer.send(
                    record.topic, record.partition, record.key, record.value, record.timestamp, NO_HEADERS
                )
                producer.commit({}, None)
        self.remember(last)

    def remember(self, last: LastRun, *, processed: bool = True) -> None:
        """Write the record to the state directory. If nothing was ``processed``, it only serves for inspection."""
        run = {"log": self._broker.log_id, "beginning": self.beginning(), "processed": processed}
        self._directory.remember_topology({**last.to_json(), **run})

    def record(self, last: LastRun) -> Write:
        return record_of(self._application_id, last, self._clock.now_ms())


def record_of(application_id: str, last: LastRun, now_ms: int) -> Write:
    """The value for the topic: compressed JSON, because large topologies would not fit into a record."""
    content = json.dumps({"format": FORMAT_VERSION, **last.to_json()})
    return Write(topology_topic(application_id), 0, _KEY, zlib.compress(content.encode()), now_ms)


def from_bytes(packed: bytes, where: str) -> LastRun:
    """Raises ``StateError`` for bytes that are not such a record, or have another format."""
    try:
        content = json.loads(zlib.decompress(packed))
        version = content["format"]
        if version == FORMAT_VERSION:
            return LastRun.from_json(content)
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise StateError(
            "the record of the last run cannot be read",
            where=where,
            why=f"{type(error).__name__}: {error}",
            hint="another program may have written to the topic: delete the topic, and the next run starts without a "
            "comparison",
        ) from error
    raise StateError(
        f"the record of the last run has format {version}, this version of pystreams reads {FORMAT_VERSION}",
        where=where,
        hint="use the version of pystreams that ran last",
    )


class TopologyInUse:
    """Writes the record of the last run as soon as records are processed. Threads may share it."""

    def __init__(self, kept: KeptTopology, last: LastRun | None, topology: Shape, *, stores: bool) -> None:
        """``stores``: the topology has stores, so a later start has something to compare."""
        #: The record that was found at the start.
        self.before = last
        #: The record to write when records are processed.
        self.now = LastRun(topology) if last is None else last.followed_by(topology)
        #: The beginning of the application; local state from before it is stale.
        self.beginning = kept.beginning()
        #: Whether nothing is left to write.
        self.kept = last == self.now or (last is None and not stores)
        self._kept_topology = kept
        self._mutex = threading.Lock()

    def difference_from(self, running: Shape | None = None) -> str:
        """The first difference of the topology from another one; None: from the one that ran before this start. The
        result is empty if no difference is known."""
        if running is None and self.before is not None:
            running = self.before.topology
        return first_difference(running, self.now.topology) if running else ""

    def processing(self) -> None:
        """Called before records are processed. Raises ``BrokerError``, ``StateError``."""
        with self._mutex:
            if not self.kept:
                self._kept_topology.write(self.now)
                self.kept = True
