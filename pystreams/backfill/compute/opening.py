"""Opens the sources of a backfill: those that only an executor can read become its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pystreams.backfill.application import Application, LoadedApplication
from pystreams.backfill.compute.executor import Executor
from pystreams.backfill.sources import (
    CsvSource,
    DataFrameSource,
    DeltaArchive,
    IcebergArchive,
    JsonSource,
    LogAfter,
    ParquetSource,
    Source,
    TopicSources,
)
from pystreams.errors import ConfigError
from pystreams.ids import TopicPartition
from pystreams.nearest import not_among
from pystreams.topology.built import BuiltTopology

#: Sources that may have been meant as tables.
_ARCHIVES: Final = (ParquetSource, JsonSource, CsvSource, DeltaArchive, IcebergArchive)

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
    whole_from: Mapping[TopicPartition, int] | None = None,
) -> Source:
    """The sources of a backfill as one. DataFrames are opened by the executor; ``partitions`` has the numbers of
    partitions that the user gave, ``goes_on`` says whether the backfill continues an earlier one. With ``boundary_ms``
    the source of all other topics goes on behind DataFrames without offsets, from ``whole_from`` on with all its
    records (``LogAfter``).

    Raises ``ConfigError`` for a DataFrame that cannot be the source of its topic.
    """
    tables = {} if not isinstance(sources, Mapping) else sources
    if boundary_ms is not None and not without_offsets(tables):
        raise _no_table(sources)
    if isinstance(sources, DataFrameSource):
        sources = {"*": sources}
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
                whole = {p.partition: offset for p, offset in (whole_from or {}).items() if p.topic == topic}
                after = _log_after(topic, boundary_ms, otherwise, loaded.built, whole)
            count = _count_of(topic, source, partitions, after)
            by_topic[topic] = executor.open_frame(source, application, loaded, topic, count, after)
        elif topic != "*":
            by_topic[topic] = source
    return TopicSources(by_topic, otherwise)


def without_offsets(sources: Sources) -> list[str]:
    """The topics that come from DataFrames without offsets, sorted."""
    if not isinstance(sources, Mapping):
        return []
    return sorted(t for t, s in sources.items() if isinstance(s, DataFrameSource) and not s.exact)


def _no_table(sources: Sources) -> ConfigError:
    """The error for a boundary without a table that it could be for."""
    by_topic = sources if isinstance(sources, Mapping) else {"*": sources}
    archives = {topic: one for topic, one in by_topic.items() if isinstance(one, _ARCHIVES)}
    why, hint = "", "leave it out"
    if archives:
        topic, archive = min(archives.items())
        of_topic = "" if topic == "*" else f" for topic {topic}"
        why = f"{archive.description}{of_topic} is read as an archive, because no timestamp=COLUMN was named"
        hint = (
            "if it is a table, name the columns of key and timestamp: --source "
            f"'{'TOPIC' if topic == '*' else topic}=KIND:PLACE?key=COLUMN&timestamp=COLUMN'; in Python "
            "DataFrameSource(SparkTable(KIND, PLACE), key=COLUMN, timestamp=COLUMN); otherwise leave the boundary out"
        )
    elif any(isinstance(one, DataFrameSource) for one in by_topic.values()):
        why = "a table with offsets needs no boundary: the log goes on behind its last offset"
    what = "a boundary is only for topics whose history is in a table without offsets"
    return ConfigError(what, why=why, hint=hint)


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


def _log_after(
    topic: str, boundary_ms: int, log: Source | None, built: BuiltTopology, whole_from: Mapping[int, int]
) -> LogAfter:
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
    return LogAfter(boundary_ms, log, whole_from)


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
