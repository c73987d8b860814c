"""How long the topics that stores are restored from keep the records that delete keys."""

from __future__ import annotations

from typing import Final

from pystreams.broker.port import Admin
from pystreams.topology.built import BuiltTopology

#: Kafka's default of ``delete.retention.ms``.
_DELETE_RETENTION_MS: Final = 86_400_000


class Tombstones:
    """Of one application. Threads may share it."""

    def __init__(self, built: BuiltTopology, admin: Admin) -> None:
        self._built = built
        self._admin = admin
        self._kept_ms: dict[str, int | None] = {}

    def kept_ms(self, topic: str) -> int | None:
        """For how long a topic keeps them; None: it is not compacted. The log is asked once."""
        if topic not in self._kept_ms:
            read = {topic}
            for sub in self._built.subtopologies:
                read.update((*sub.changelogs.values(), *sub.source_changelogs.values()))
            described = self._admin.describe_topics(read)
            for name in read:
                # A login that may not see settings gets Kafka's default, for a changelog as Kafka Streams makes it.
                config = described[name].config if name in described else {}
                compacted = "compact" in config.get("cleanup.policy", "compact")
                kept_ms = int(config.get("delete.retention.ms", _DELETE_RETENTION_MS))
                self._kept_ms[name] = kept_ms if compacted else None
        return self._kept_ms[topic]
