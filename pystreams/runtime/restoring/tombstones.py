"""Finds out how long topics from which stores are restored keep tombstones, the records that delete keys."""

from __future__ import annotations

from typing import Final

from pystreams.broker.port import Admin
from pystreams.topology.built import BuiltTopology

#: Kafka's default of ``delete.retention.ms``.
_DELETE_RETENTION_MS: Final = 86_400_000


class Tombstones:
    """The retention of tombstones in the topics of one application. Threads may share it."""

    def __init__(self, built: BuiltTopology, admin: Admin) -> None:
        self._built = built
        self._admin = admin
        self._kept_ms: dict[str, int | None] = {}

    def kept_ms(self, topic: str) -> int | None:
        """How long (ms) a topic keeps tombstones; None: it is not compacted. Asks the log once for all topics."""
        if topic not in self._kept_ms:
            read = {topic}
            for sub in self._built.subtopologies:
                read.update((*sub.changelogs.values(), *sub.source_changelogs.values()))
            described = self._admin.describe_topics(read)
            for name in read:
                # Without the right to read the settings, assume Kafka's defaults for a changelog of Kafka Streams.
                config = described[name].config if name in described else {}
                compacted = "compact" in config.get("cleanup.policy", "compact")
                kept_ms = int(config.get("delete.retention.ms", _DELETE_RETENTION_MS))
                self._kept_ms[name] = kept_ms if compacted else None
        return self._kept_ms[topic]
