"""Where the keys of a store are: in which partition, and which member of the group has that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pystreams.errors import StateError
from pystreams.partitioning import partition_for_key
from pystreams.state.spec import StoreSpec
from pystreams.topology.built import BuiltTopology, SubTopology
from pystreams.topology.nodes import ProcessorNode, SinkNode
from pystreams.windowed import Windowed

#: Gives the partition of a key in bytes, among so many.
KeyPartitioner: TypeAlias = Callable[[bytes, int], int]


@dataclass(frozen=True, slots=True)
class Found:
    """Where a store's partitions are: ``here`` those of tasks that run in this process, ``arriving`` those that it has
    been given and that do not run yet; ``owners`` names the member of each, as far as the group has told."""

    here: Collection[int] = ()
    arriving: Collection[int] = ()
    owners: Mapping[int, str] | None = None

    def told(self, partitions: Collection[int]) -> str:
        """Who has each of some partitions."""
        return "; ".join(f"partition {number} {self._whereabouts(number)}" for number in sorted(partitions))

    def _whereabouts(self, partition: int) -> str:
        if partition in self.here:
            return "is here"
        if partition in self.arriving:
            return "is being restored here"
        if not self.owners:
            return "is elsewhere, the group has not told where"
        owner = self.owners.get(partition)
        return f"is given to {owner}" if owner else "is given to nobody at the moment"


@dataclass(frozen=True, slots=True)
class Placing:
    """How the keys of a store are spread over ``partitions`` (0: the client has not been started).

    ``partitioner`` None: it is not known. Source: KafkaStreams.queryMetadataForKey, which takes the default partitioner
    for granted.
    """

    spec: StoreSpec
    subtopology: int
    partitions: int
    partitioner: KeyPartitioner | None

    def partition_of(self, key: Any, partitioner: KeyPartitioner) -> int | None:
        """The partition that a partitioner gives a key; None if the key cannot be written, or there is none."""
        if not self.partitions or key is None or isinstance(key, Windowed):
            return None
        try:
            data = self.spec.key_serde.serializer(f"{self.spec.name}-changelog")(key)
        except Exception:  # noqa: BLE001 - the store itself tells what is wrong with a key, where there is one
            return None
        return partitioner(data, self.partitions)

    def require_absent(self, key: Any, found: Found) -> None:
        """A key was found in none of the partitions that are here. Raises ``StateError`` unless it is nowhere else."""
        if self.partitions and len(found.here) == self.partitions:
            return
        partition = self.partition_of(key, self.partitioner) if self.partitioner is not None else None
        if partition is None:
            raise self._unknown(key, found)
        if partition not in found.here:
            raise StateError(
                f"key {key!r} of store {self.spec.name} is not for this process to tell",
                where=self._here(found),
                why=found.told([partition]),
                hint="ask the process that has the partition; during a rebalance, ask again in a moment",
            )

    def not_here(self, found: Found) -> StateError:
        """What it means that no partition is here."""
        elsewhere = f"; {found.told(self._others(found))}" if self.partitions else ""
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
            f"key {key!r} of store {self.spec.name} is not in the partitions of this process; others may have it",
            where=self._here(found),
            why=f"{found.told(self._others(found))}. How keys were spread over them is known only where the application"
            f" itself has written them, by its default partitioner{likely}",
            hint="ask the other processes; or, if whoever wrote the input chose partitions as the default does, say so:"
            " streams.store(name, partitioner=pystreams.partitioning.partition_for_key)",
        )

    def _others(self, found: Found) -> set[int]:
        return set(range(self.partitions)).difference(found.here)

    def _here(self, found: Found) -> str:
        listed = ", ".join(map(str, sorted(found.here))) or "none"
        return f"partitions that run here: {listed} of {self.partitions}"


def placing(
    built: BuiltTopology,
    store: str,
    partitions: Callable[[int], int],
    partitioner: KeyPartitioner | None = None,
) -> Placing:
    """That of a store of tasks. ``partitions`` gives the number of a sub-topology's tasks; ``partitioner`` is what the
    user says of how keys are spread."""
    sub = next(sub for sub in built.subtopologies if any(spec.name == store for spec in sub.stores))
    spec = next(spec for spec in sub.stores if spec.name == store)
    if partitioner is None and _is_partitioned_by_default(built, sub, store):
        partitioner = partition_for_key
    return Placing(spec, sub.id, partitions(sub.id), partitioner)


def _is_partitioned_by_default(built: BuiltTopology, sub: SubTopology, store: str) -> bool:
    """True if all that a store holds came to its task because of its key: all inputs are repartition topics that the
    application writes by the default partitioner, and whoever writes to the store does that under the record's key."""
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
