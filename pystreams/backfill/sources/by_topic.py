"""Topics from several sources as one source."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.backfill.sources.source import Source, Span
from pystreams.errors import TopicError
from pystreams.ids import TopicPartition


@dataclass(frozen=True)
class TopicSources:
    """Each topic of ``by_topic`` comes from its own source, all others from ``otherwise``."""

    by_topic: Mapping[str, Source] = field(default_factory=dict)
    otherwise: Source | None = None

    @property
    def description(self) -> str:
        parts = [f"{topic} from {source.description}" for topic, source in sorted(self.by_topic.items())]
        if self.otherwise is not None:
            parts.append(f"others from {self.otherwise.description}" if parts else self.otherwise.description)
        return ", ".join(parts)

    @property
    def approximate(self) -> bool:
        return any(source.approximate for source in self._sources())

    def of(self, topic: str) -> Source:
        """The source of a topic. Raises ``TopicError`` if there is none."""
        source = self.by_topic.get(topic, self.otherwise)
        if source is None:
            known = ", ".join(sorted(self.by_topic)) or "none"
            raise TopicError(
                f"there is no source for the records of topic {topic}",
                why=f"there are sources for: {known}",
                hint=f"name a source for {topic}, or one for all other topics",
            )
        return source

    def partitions(self) -> Mapping[str, int]:
        """Raises ``TopicError`` for a topic that its own source does not have."""
        found = dict(self.otherwise.partitions()) if self.otherwise is not None else {}
        counts = {id(source): source.partitions() for source in self.by_topic.values()}
        for topic, source in self.by_topic.items():
            of_source = counts[id(source)]
            if topic not in of_source:
                raise TopicError(
                    f"the source of topic {topic} does not have it",
                    where=source.description,
                    why=f"its topics: {', '.join(sorted(of_source)) or 'none'}",
                )
            found[topic] = of_source[topic]
        return found

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: o for source, own in self._split(partitions) for p, o in source.beginnings(own).items()}

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: o for source, own in self._split(partitions) for p, o in source.ends(own).items()}

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        split = self._split(partitions)
        return {p: o for source, own in split for p, o in source.offsets_at(own, time_ms).items()}

    def missing(self, input: InputRange) -> list[Span]:
        return self.of(input.partition.topic).missing(input)

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        split = self._split(ends)
        return {
            p: last
            for source, own in split
            for p, last in source.last_before({p: ends[p] for p in own}).items()
        }

    def read(self, input: InputRange) -> Iterator[Arrow]:
        return self.of(input.partition.topic).read(input)

    def _sources(self) -> list[Source]:
        return [*self.by_topic.values(), *([] if self.otherwise is None else [self.otherwise])]

    def _split(self, partitions: Collection[TopicPartition]) -> list[tuple[Source, list[TopicPartition]]]:
        """The partitions by source: each is asked once."""
        found: dict[int, tuple[Source, list[TopicPartition]]] = {}
        for partition in partitions:
            source = self.of(partition.topic)
            found.setdefault(id(source), (source, []))[1].append(partition)
        return list(found.values())
