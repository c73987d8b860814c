"""Finds the partition of a key in a store, and says where partitions are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pystreams.errors import StateError
from pystreams.ids import TaskId, TopicPartition
from pystreams.nearest import listing
from pystreams.partitioning import partition_for_key
from pystreams.state.spec import StoreSpec
from pystreams.topology.built import BuiltTopology, SubTopology
from pystreams.topology.nodes import ProcessorNode, SinkNode
from pystreams.windowed import Windowed

#: Returns the partition of a serialized key, given the number of partitions.
KeyPartitioner: TypeAlias = Callable[[bytes, int], int]


@dataclass(frozen=True, slots=True)
class Found:
    """The places of a store's partitions. ``here``: the partitions of tasks that run in this process. ``arriving``: the
    partitions of tasks that were assigned to it and do not run yet. ``owners``: the member of each partition, if the
    group has sent it."""

    here: Collection[int] = ()
    arriving: Collection[int] = ()
    owners: Mapping[int, str] | None = None

    def describe(self, partitions: Collection[int]) -> str:
        """The places of some partitions, as text."""
        return "; ".join(f"partition {number} {self._whereabouts(number)}" for number in sorted(partitions))

    def _whereabouts(self, partition: int) -> str:
        if partition in self.here:
            return "is here"
        if partition in self.arriving:
            return "is being restored here"
        if not self.owners:
            return "is in another process, and the group has not announced which"
        owner = self.owners.get(partition)
        return f"is assigned to {owner}" if owner else "is not assigned at the moment"


@dataclass(frozen=True, slots=True)
class Placing:
    """How the keys of a store are spread over ``partitions`` (0: the client has not been started). ``topics`` are the
    inputs of its tasks.

    ``partitioner`` None: it is unknown. Source: KafkaStreams.queryMetadataForKey, which assumes the default
    partitioner.
    """

    spec: StoreSpec
    subtopology: int
    partitions: int
    topics: Collection[str]
    partitioner: KeyPartitioner | None

    def likely_partition(self, key: Any) -> int | None:
        """The partition of a key, None if the partitioner is unknown or there is no partition."""
        return None if self.partitioner is None else self.partition_of(key, self.partitioner)

    def require_inputs(self, position: Collection[TopicPartition]) -> None:
        """Raises ``StateError`` if a position names topics that the store's tasks do not read."""
        if not position:
            return
        others = {place.topic for place in position}.difference(self.topics)
        if others and self.topics:
            raise StateError(
                f"store {self.spec.name} cannot be asked for a position in {listing(sorted(others), most=5)}",
                where=f"its tasks read {listing(sorted(self.topics), most=5)}",
                why="a position is one in the topics that the tasks of the store themselves read",
                hint="records that go through a repartition topic first have other offsets there",
            )

    def partition_of(self, key: Any, partitioner: KeyPartitioner) -> int | None:
        """The partition that a partitioner gives a key; None if the key cannot be serialized, or there is no
        partition."""
        if not self.partitions or key is None or isinstance(key, Windowed):
            return None
        try:
            # Serialize the key as in the input, because these bytes have decided its partition.
            data = self.spec.key_serde.key_serializer(min(self.topics, default=self.spec.name))(key)
        except Exception:  # noqa: BLE001 - the store itself raises for a key that it cannot serialize
            return None
        return partitioner(data, self.partitions)

    def require_absent(self, key: Any, found: Found) -> None:
        """Called for a key that is not in the partitions of this process. Raises ``StateError`` if it may be in another
        process."""
        if self.partitions and len(found.here) == self.partitions:
            return
        partition = self.likely_partition(key)
        if partition is None:
            raise self._unknown(key, found)
        if partition not in found.here:
            raise StateError(
                f"key {key!r} of store {self.spec.name} cannot be read from this process",
                where=self._here(found),
                why=found.describe([partition]),
                hint="query the process that has the partition; during a rebalance, query again in a moment",
            )

    def not_here(self, found: Found) -> StateError:
        """The error if no partition is in this process."""
        elsewhere = f"; {found.describe(self._others(found))}" if self.partitions else ""
        return StateError(
            f"store {self.spec.name} is not in this process now",
            why=f"none of its tasks is running here: they are being restored, or belong to other members{elsewhere}",
        )

    def _unknown(self, key: Any, found: Found) -> StateError:
        if not found.here:
            return self.not_here(found)
        default = self.partition_of(key, partition_for_key)
        likely = "" if default is None else f": the default partitioner would give partition {default}"
        return StateError(
            f"key {key!r} of store {self.spec.name} is not in the partitions of this process; another process may have "
            "it",
            where=self._here(found),
            why=f"{found.describe(self._others(found))}. The partition of a key is known only if the application "
            f"itself has written the records with its default partitioner{likely}",
            hint="query the other processes; or, if the producer of the input uses the default partitioner, say so: "
            "streams.store(name, partitioner=pystreams.partitioning.partition_for_key)",
        )

    def _others(self, found: Found) -> set[int]:
        return set(range(self.partitions)).difference(found.here)

    def _here(self, found: Found) -> str:
        listed = ", ".join(map(str, sorted(found.here))) or "none"
        return f"partitions that run here: {listed} of {self.partitions}"


def placing(
    built: BuiltTopology,
    store: str,
    inputs: Mapping[TaskId, Collection[TopicPartition]],
    partitioner: KeyPartitioner | None = None,
) -> Placing:
    """The ``Placing`` of a local store. ``inputs`` are those of all tasks; ``partitioner`` is the one that the user has
    named."""
    sub = next(sub for sub in built.subtopologies if any(spec.name == store for spec in sub.stores))
    spec = next(spec for spec in sub.stores if spec.name == store)
    if partitioner is None and _is_partitioned_by_default(built, sub, store):
        partitioner = partition_for_key
    of_store = [partitions for task, partitions in inputs.items() if task.subtopology == sub.id]
    topics = frozenset(place.topic for partitions in of_store for place in partitions)
    return Placing(spec, sub.id, len(of_store), topics, partitioner)


def _is_partitioned_by_default(built: BuiltTopology, sub: SubTopology, store: str) -> bool:
    """True if the default partitioner has chosen the partition of every key in the store: all inputs are repartition
    topics that the application writes with the default partitioner, and all steps write to the store under the record's
    key."""
    users = [node for node in sub.nodes if isinstance(node, ProcessorNode) and store in node.stores]
    if not users or not all(node.operation.stores_under_key and node.supplier is None for node in users):
        return False
    if sub.pattern_sources or not set(sub.sources) <= sub.repartition_source_topics.keys():
        return False
    sinks = [
        node
        for one in built.subtopologies
        for node in one.nodes
        if isinstance(node, SinkNode) and node.topic in sub.repartition_source_topics
    ]
    return all(sink.partitioner is None for sink in sinks)
