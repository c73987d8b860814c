"""The note in a table's properties that says what was archived: topics, and ranges of offsets with or without records.

The rows alone do not show this, because a hole between offsets may come from compaction or aborted transactions.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pystreams.backfill.sources.archive_log import cover
from pystreams.backfill.sources.source import Span
from pystreams.errors import StateError
from pystreams.ids import TopicPartition

#: The name of the property.
PROPERTY: Final = "pystreams.archive"
FORMAT_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Content:
    """``counts`` are the partitions of each topic, ``covered`` the archived spans of each partition, in order; spans
    that touch are one."""

    counts: Mapping[str, int] = field(default_factory=dict)
    covered: Mapping[TopicPartition, list[Span]] = field(default_factory=dict)

    def end(self, partition: TopicPartition) -> int:
        """The end offset (exclusive) of what was archived of a partition; 0 if nothing was."""
        return max((end for _, end in self.covered.get(partition, ())), default=0)

    def grown(self, counts: Mapping[str, int], spans: Iterable[tuple[TopicPartition, Span]]) -> Content:
        """With the topics and spans that a commit adds."""
        most = {t: max(self.counts.get(t, 0), counts.get(t, 0)) for t in self.counts.keys() | counts.keys()}
        covered = {partition: list(of) for partition, of in self.covered.items()}
        for partition, span in spans:
            cover(covered.setdefault(partition, []), span)
        return Content(most, covered)


@dataclass(frozen=True, slots=True)
class CommitNote:
    """The content after commit ``number``, with so many ``records``. Commits count from 0; -1 is that of a new table.
    ``id`` is a random number. ``before`` is the content before the commit, as long as its files may not be there.
    ``sequence`` is the table's last sequence number before the commit, where it has any."""

    number: int
    after: Content
    before: Content | None = None
    records: int = 0
    sequence: int = -1
    id: int = field(default_factory=lambda: secrets.randbits(63))

    def to_text(self) -> str:
        content = {
            "format": FORMAT_VERSION,
            "commit": self.number,
            "id": self.id,
            "records": self.records,
            "sequence": self.sequence,
            "after": _plain(self.after),
            "before": None if self.before is None else _plain(self.before),
        }
        return json.dumps(content, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str, where: str) -> CommitNote:
        """Raises ``StateError`` for text that is not a note, or one of another format."""
        try:
            note: dict[str, Any] = json.loads(text)
            version = note["format"]
            if version == FORMAT_VERSION:
                before = None if note["before"] is None else _content(note["before"])
                numbers = note["records"], note["sequence"], note["id"]
                return cls(note["commit"], _content(note["after"]), before, *numbers)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(
                f"the table's property {PROPERTY} does not say what was archived",
                where=where,
                why=f"{type(error).__name__}: {error}",
                hint="restore the value that `pystreams archive` wrote last: the table's history has it",
            ) from error
        raise StateError(
            f"the archive has format {version}, this version of pystreams reads {FORMAT_VERSION}",
            where=where,
            hint="read it with the version that wrote it",
        )


def _plain(content: Content) -> dict[str, Any]:
    covered: dict[str, dict[str, list[Span]]] = {}
    for partition, spans in sorted(content.covered.items()):
        covered.setdefault(partition.topic, {})[str(partition.partition)] = spans
    return {"partitions": dict(sorted(content.counts.items())), "covered": covered}


def _content(plain: Mapping[str, Any]) -> Content:
    return Content(
        dict(plain["partitions"]),
        {
            TopicPartition(topic, int(number)): [(start, end) for start, end in spans]
            for topic, of_topic in plain["covered"].items()
            for number, spans in of_topic.items()
        },
    )
