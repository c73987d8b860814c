"""Opens the sources of a backfill: those that only an executor can read become its own."""

from __future__ import annotations

from collections.abc import Mapping

from pystreams.backfill.application import Application, LoadedApplication
from pystreams.backfill.compute.executor import Executor
from pystreams.backfill.sources import DataFrameSource, LogAfter, Source, TopicSources
from pystreams.errors import ConfigError
from pystreams.nearest import not_among
from pystreams.topology.built import BuiltTopology

#: One source for all topics, or by topic; ``*`` is the source of those that are not named.
Sources = Source | Mapping[str, Source | DataFrameSource]


def opened(
    sources: Sources,
    executor: Executor,
    application: Application,
    loaded: LoadedApplication,
    partitions: Mapping[str, int],
    *,
    boundary_ms: int | None,
    goes_on: bool,
) -> Source:
    """The sources of a backfill as one. DataFrames are opened by the executor; ``partitions`` has the numbers of
    partitions that the user gave, ``goes_on`` says whether the backfill continues an earlier one. With ``boundary_ms``
    the source of all other topics goes on behind DataFrames without offsets.

    Raises ``ConfigError`` for a DataFrame that cannot be the source of its topic.
    """
    tables = {} if not isinstance(sources, Mapping) else sources
    bounded = [t for t, s in tables.items() if isinstance(s, DataFrameSource) and not s.exact]
    if boundary_ms is not None and not bounded:
        raise ConfigError(
            "a boundary is only for topics whose history is in a table without offsets",
            hint="leave it out",
        )
    if not isinstance(sources, Mapping):
        return sources
    others = sources.get("*")
    otherwise = None if isinstance(others, DataFrameSource) else others
    by_topic: dict[str, Source] = {}
    for topic, source in sources.items():
        if isinstance(source, DataFrameSource):
            _check_frame(topic, source, loaded.built, goes_on=goes_on)
            after = None
            if boundary_ms is not None and not source.exact:
                after = _log_after(topic, boundary_ms, otherwise, loaded.built)
            count = _count_of(topic, source, partitions, after)
            by_topic[topic] = executor.open_frame(source, application, loaded, topic, count, after)
        elif topic != "*":
            by_topic[topic] = source
    return TopicSources(by_topic, otherwise)


def _check_frame(topic: str, source: DataFrameSource, built: BuiltTopology, *, goes_on: bool) -> None:
    """Raises ``ConfigError`` for a topic that cannot come from a DataFrame."""
    if topic == "*":
        raise ConfigError(
            "a DataFrame cannot be the source of all other topics",
            why="its columns are those of one topic",
            hint="name the topic: sources={'orders': DataFrameSource(...)}",
        )
    if topic in built.global_topics:
        raise ConfigError(
            f"topic {topic} cannot come from a DataFrame",
            why="it fills a global table, which every worker reads as a whole by itself",
            hint="read the topic from its log or from an archive",
        )
    if goes_on and not source.exact:
        raise ConfigError(
            f"a table without offsets cannot continue an earlier backfill: that of topic {topic}",
            why="rows that were added since may come before rows that the earlier backfill has read",
            hint="name the columns of partition and offset, or compute from the beginning",
        )
    own = {name for sub in built.subtopologies for name in sub.source_topics} - set(built.internal_topics)
    if not any(sub.source_for(topic) for sub in built.subtopologies):
        raise ConfigError(
            f"application {built.application_id} does not read topic {topic}",
            **not_among(topic, own, "it reads"),
        )


def _log_after(topic: str, boundary_ms: int, log: Source | None, built: BuiltTopology) -> LogAfter:
    """The log behind the table of a topic. Raises ``ConfigError`` if it does not fit."""
    if log is None:
        raise ConfigError(
            f"there is no log that goes on behind the table of topic {topic}",
            why="behind the boundary records come from the source of all other topics",
            hint="name it: sources={'*': KafkaSource(...), ...}",
        )
    stores = [spec.name for spec in built.stores if spec.source_topic == topic]
    if stores:
        raise ConfigError(
            f"a table cannot come before the log of topic {topic}",
            why=f"store {stores[0]} is restored from this topic instead of a changelog, without the table",
            hint="leave reuse.ktable.source.topics out of topology_optimization",
        )
    return LogAfter(boundary_ms, log)


def _count_of(
    topic: str, source: DataFrameSource, partitions: Mapping[str, int], after: LogAfter | None
) -> int:
    """The number of partitions of a topic that comes from a DataFrame. Raises ``ConfigError`` if it is not
    known, or if two are given."""
    given = (source.partitions, partitions.get(topic), after.log.partitions().get(topic) if after else None)
    counts = {count for count in given if count is not None}
    if len(counts) == 1:
        return counts.pop()
    raise ConfigError(
        f"the number of partitions of topic {topic} is not known"
        if not counts
        else f"topic {topic} cannot have both {' and '.join(map(str, sorted(counts)))} partitions",
        why="the number decides to which task a key goes, and a table does not contain it",
        hint="give the number that it has where the application runs live: DataFrameSource(..., partitions=4); on the "
        "command line &partitions=4",
    )
