"""Checks whether a snapshot belongs to this application and this log, and whether its changelogs still hold the records
after it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from pystreams.broker.port import Admin
from pystreams.clock import Clock
from pystreams.errors import StateCorruptedError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.restoring.tombstones import Tombstones
from pystreams.state.snapshots.manifest import Manifest, StoreContent, schema_of
from pystreams.state.spec import StoreSpec
from pystreams.topology.built import BuiltTopology


class Fitting:
    """The checks of one client. Threads may share them."""

    def __init__(
        self,
        built: BuiltTopology,
        admin: Admin,
        clock: Clock,
        origin: Callable[[], str],
        beginning: str | None,
    ) -> None:
        """``origin`` identifies the log, and the last hand-over to the application; ``beginning`` identifies the time
        since the application was created or reset."""
        self.application_id = built.application_id
        self.beginning = beginning
        self._built = built
        self._admin = admin
        self._clock = clock
        self._origin = origin
        self._tombstones = Tombstones(built, admin)
        self._mutex = threading.Lock()
        self._topic_ids: dict[str, str | None] = {}

    @property
    def origin(self) -> str:
        return self._origin()

    def stores(self, task_id: TaskId) -> dict[str, tuple[StoreSpec, TopicPartition]]:
        """The stores of a task that belong to a snapshot, each with the partition from which it is restored."""
        sub = self._built.subtopologies[task_id.subtopology]
        topics = {**sub.changelogs, **sub.source_changelogs}
        return {
            spec.name: (spec, TopicPartition(topics[spec.name], task_id.partition))
            for spec in sub.stores
            if spec.persistent and spec.name in topics
        }

    def contents(self, task_id: TaskId, offsets: Mapping[str, int]) -> dict[str, StoreContent]:
        """The content of a snapshot whose stores are complete up to ``offsets``."""
        return {
            name: StoreContent(topic.topic, self._topic_id(topic.topic), offsets[name], schema_of(spec))
            for name, (spec, topic) in self.stores(task_id).items()
            if name in offsets
        }

    def usable(self, task_id: TaskId, manifest: Manifest) -> dict[str, int]:
        """The offsets of the stores in a snapshot with which a task can continue: those that the task still has.

        Raises ``StateCorruptedError`` if the snapshot does not fit, ``BrokerError`` if the log does not answer.
        """
        self._require_own(task_id, manifest)
        stores = self.stores(task_id)
        kept = {name: content for name, content in manifest.stores.items() if name in stores}
        if not kept:
            raise _refused(manifest, "the task has none of its stores any more")
        expected = self.contents(task_id, {name: content.offset for name, content in kept.items()})
        for name, content in kept.items():
            if content.schema != expected[name].schema:
                raise _refused(manifest, f"store {name} has another form in the topology now")
            if (content.topic, content.topic_id) != (expected[name].topic, expected[name].topic_id):
                raise _refused(
                    manifest, f"store {name} follows another topic than {expected[name].topic} now"
                )
        partitions = {name: stores[name][1] for name in kept}
        self._require_tombstones(manifest, partitions)
        beginnings = self._admin.beginning_offsets(list(partitions.values()))
        ends = self._admin.end_offsets(list(partitions.values()))
        for name, content in kept.items():
            topic = partitions[name]
            if not beginnings[topic] <= content.offset <= ends[topic]:
                raise _refused(
                    manifest,
                    f"store {name} is as of offset {content.offset} of {topic}, which holds offsets "
                    f"{beginnings[topic]} to {ends[topic]} (exclusive)",
                )
        return {name: content.offset for name, content in kept.items()}

    def _require_own(self, task_id: TaskId, manifest: Manifest) -> None:
        if (manifest.application_id, manifest.task) != (self.application_id, str(task_id)):
            raise _refused(manifest, f"it is one of {manifest.application_id}, task {manifest.task}")
        if manifest.origin != self.origin:
            raise _refused(
                manifest,
                f"it follows {manifest.origin}, not {self.origin}: another log, or it is from before a hand-over",
            )
        if manifest.beginning != self.beginning:
            raise _refused(manifest, "it is from before the application was reset")

    def _require_tombstones(self, manifest: Manifest, partitions: Mapping[str, TopicPartition]) -> None:
        """Refuse a snapshot that is older than the time for which a compacted topic keeps tombstones: it would still
        have keys that were deleted since."""
        age_ms = self._clock.now_ms() - manifest.taken_ms
        for name, partition in partitions.items():
            kept_ms = self._tombstones.kept_ms(partition.topic)
            if kept_ms is not None and age_ms > kept_ms:
                raise _refused(
                    manifest,
                    f"it is {age_ms / 3_600_000:.1f} h old, and the topic of store {name} keeps deletions for "
                    f"{kept_ms / 3_600_000:.1f} h (delete.retention.ms)",
                )

    def _topic_id(self, topic: str) -> str | None:
        """The id that the topic had when this client first needed it, because open stores follow that topic."""
        with self._mutex:
            if topic not in self._topic_ids:
                self._topic_ids[topic] = self._admin.topic_id(topic)
            return self._topic_ids[topic]


def _refused(manifest: Manifest, why: str) -> StateCorruptedError:
    return StateCorruptedError(
        "a snapshot does not fit", where=f"task {manifest.task}, {manifest.name}", why=why
    )
