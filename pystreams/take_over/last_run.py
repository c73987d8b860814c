"""What the stored data of an application was written with: the topology that processed records last.

It is kept in two places, written before the first record is processed: in a topic of the application's, so that every
machine knows it, and with the local state, for state that no topic has. The topic is a changelog by its name, of one
partition and compacted: whatever resets the application, Java's tool included, deletes it with the others.
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

log = logging.getLogger(__name__)

#: What ``topology.fingerprint.shape`` gives: a topology as JSON.
Shape: TypeAlias = Sequence[Mapping[str, Any]]

FORMAT_VERSION: Final = 1
_KEY: Final = b"topology"
_TOPIC: Final = {"cleanup.policy": "compact", "retention.ms": "-1"}
_SILENCE_MS: Final = 15_000.0


def topology_topic(application_id: str) -> str:
    """Where an application's topology is: one partition, compacted."""
    return f"{application_id}-pystreams-topology-changelog"


def topology_topic_spec(application_id: str) -> TopicSpec:
    """To create it."""
    return TopicSpec(topology_topic(application_id), 1, _TOPIC)


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A take-over that has begun: changelogs of these stores are deleted or made anew. ``attempt`` names it."""

    attempt: str
    dropped: tuple[str, ...] = ()
    carried: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LastRun:
    """``topology`` processed records last, or somebody has accepted what the stores ``accepted`` lose by it. Stores may
    still hold what ``earlier`` ones have written. ``begun`` tells of stores whose content began anew, or came from
    another name; what lies on a disk from before is none of theirs."""

    topology: Shape
    earlier: tuple[Shape, ...] = ()
    begun: Mapping[str, Begun] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    unfinished: Unfinished | None = None
    #: Stores that are no more, whose changelogs may be there still: one of that name must not be restored from there.
    left_over: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {"topology": self.topology, "earlier": self.earlier}
        content["accepted"] = self.accepted
        content["left_over"] = self.left_over
        content["begun"] = {store: [one.id, one.was] for store, one in self.begun.items()}
        if self.unfinished is not None:
            told = self.unfinished
            content["unfinished"] = [told.attempt, told.dropped, told.carried]
        return content

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LastRun:
        """Raises ``KeyError``, ``TypeError``, ``ValueError`` for something else."""
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
        """What holds once ``topology`` processes records."""
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
            **{what: told for what, told in part.items() if what not in ("internal", "copartitioned")},
            **({"internal": {}, "copartitioned": []} if "internal" in part else {}),
            "nodes": [],
            "stores": [store for store in part["stores"] if store[0] in names],
        }
        for part in shape
    ]


class KeptTopology:
    """Reads and writes what was processed with last."""

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
        """As the topic has it; else as the local state has it, if it followed the same log. None: nothing ran yet.

        Raises ``StateError`` for what cannot be read, ``BrokerUnavailableError`` while it is being written.
        """
        try:
            packed = last_value(self._broker, self._admin, self._partition, _KEY, self._clock, _SILENCE_MS)
        except SilentPartitionError as error:
            raise BrokerUnavailableError(
                f"what {self._application_id} has stored is being changed",
                where=f"{self._partition}, {self._broker.description}",
                why=f"the last record was not committed within {_SILENCE_MS / 1000:g} s",
                hint="start when the other member has started; what a killed one left open ends within a minute",
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
        """Names the time since the application was made or reset, alike for all machines. None: nobody can tell.

        A reset deletes the topic with all others, so the next topic of its name is another one.
        """
        return self._admin.topic_id(self._partition.topic)

    def create_topic(self, *, needed: bool) -> None:
        """Make room for it. Where that is not permitted, the local state alone knows what ran, unless it is ``needed``:
        then it raises ``BrokerError``."""
        topic = self._partition.topic
        if topic in self._admin.partition_counts():
            return
        try:
            self._admin.create_topics([topology_topic_spec(self._application_id)])
        except BrokerError as error:
            if needed:
                raise BrokerError(
                    f"what {self._application_id} has stored is deleted or moved only where others can see it",
                    where=self._broker.description,
                    why=f"topic {topic} does not exist, and cannot be created: {error.what}",
                    hint="have it created (one partition, cleanup.policy=compact), with the right to write to it",
                ) from error
            log.warning(
                "what this application stores is known on this machine only, because %s cannot be created: %s",
                topic,
                error,
            )

    def write(self, last: LastRun) -> None:
        """To both places."""
        if self._partition.topic in self._admin.partition_counts():
            record = self.record(last)
            with closing(self._broker.producer(f"{self._application_id}-topology", "topology")) as producer:
                producer.send(
                    record.topic, record.partition, record.key, record.value, record.timestamp, NO_HEADERS
                )
                producer.commit({}, None)
        self.remember(last)

    def remember(self, last: LastRun, *, processed: bool = True) -> None:
        """With the local state. Where nothing was ``processed``, it is there to be looked at."""
        told = {"log": self._broker.log_id, "beginning": self.beginning(), "processed": processed}
        self._directory.remember_topology({**last.to_json(), **told})

    def record(self, last: LastRun) -> Write:
        return record_of(self._application_id, last, self._clock.now_ms())


def record_of(application_id: str, last: LastRun, now_ms: int) -> Write:
    """What is written to the topic: JSON, compressed, because large topologies would not fit into a record."""
    content = json.dumps({"format": FORMAT_VERSION, **last.to_json()})
    return Write(topology_topic(application_id), 0, _KEY, zlib.compress(content.encode()), now_ms)


def from_bytes(packed: bytes, where: str) -> LastRun:
    """Raises ``StateError`` for what is no such record, or one of another format."""
    try:
        content = json.loads(zlib.decompress(packed))
        version = content["format"]
        if version == FORMAT_VERSION:
            return LastRun.from_json(content)
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise StateError(
            "what stands there does not tell what an application has stored",
            where=where,
            why=f"{type(error).__name__}: {error}",
            hint="did somebody else write to the topic? Delete it: the next run starts without a comparison",
        ) from error
    raise StateError(
        f"what the application has stored is told in format {version}, this version of pystreams reads "
        f"{FORMAT_VERSION}",
        where=where,
        hint="use the version of pystreams that ran last",
    )


class TopologyInUse:
    """Has the topology kept as soon as records are processed with it. Threads may share it."""

    def __init__(self, kept: KeptTopology, last: LastRun | None, topology: Shape, *, stores: bool) -> None:
        """``stores``: there is something to be compared later."""
        #: What was found at the start.
        self.before = last
        #: What holds once records are processed.
        self.now = LastRun(topology) if last is None else last.followed_by(topology)
        #: Local state of before it is stale.
        self.beginning = kept.beginning()
        #: Nothing is left to do.
        self.kept = last == self.now or (last is None and not stores)
        self._kept_topology = kept
        self._mutex = threading.Lock()

    def processing(self) -> None:
        """Called before records are processed. Raises ``BrokerError``, ``StateError``."""
        with self._mutex:
            if not self.kept:
                self._kept_topology.write(self.now)
                self.kept = True
