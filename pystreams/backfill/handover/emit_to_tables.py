"""Records for sinks as rows of tables, with the columns of ``result.emitted``: the rows of a backfill are there once.

A table is a folder of Parquet files, written where the executor works; or one of Iceberg or Delta, which Spark writes
in one commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from os import PathLike, fspath
from typing import Final, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.application import Application
from pystreams.backfill.columns.record_columns import RecordColumns
from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.compute.executor import Executor, TableBatch
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.handover.cut_backfill import CutBackfill
from pystreams.backfill.handover.emit_to_files import AppendToFolder
from pystreams.backfill.locations import overlapping, same_place
from pystreams.backfill.sources import SparkTable
from pystreams.backfill.sources.folder import Folder
from pystreams.errors import ConfigError, TopicError
from pystreams.nearest import not_among
from pystreams.topology.nodes import SinkNode

#: A folder for Parquet files (a path or a URL), or a table that Spark writes.
Table: TypeAlias = str | PathLike[str] | SparkTable

#: Spark's formats whose commits can name a batch: others could get it twice.
FORMATS: Final = ("iceberg", "delta")


class CutApplication(CutBackfill, Protocol):
    """``CutBackfill``, with the application as processes get it."""

    @property
    def application(self) -> Application: ...


def emit_to_tables(result: BackfillResult, tables: Mapping[str, Table]) -> dict[str, int]:
    """Append the records for topics to tables; gives their number by topic. Raises what ``check_tables`` and
    ``prepare_tables`` raise, and ``StateError`` where records cannot be written."""
    check_tables(result, tables)
    prepare_tables(result, tables, result.executor)
    return {topic: _append(result, topic, table) for topic, table in tables.items()}


def check_tables(cut: CutApplication, tables: Mapping[str, Table]) -> None:
    """Whether tables can take the records for topics, as far as that is known without Spark.

    Raises ``TopicError`` for a topic that the application does not write to, ``ConfigError`` for one table of two
    topics, one in the folder of another, a format that cannot have records once, and a place that is not a folder of
    such Parquet files.
    """
    _require_a_table_each(tables)
    for topic, table in tables.items():
        _require_sink(cut, topic)
        if not isinstance(table, SparkTable):
            _check_folder(Folder(fspath(table)), _schema(cut, topic))
        elif table.format not in FORMATS:
            raise ConfigError(
                f"records cannot be emitted once to {table.description}",
                why=f"a table of the format {table.format} does not record which backfills it holds",
                hint="name a table of iceberg or delta, or a folder for Parquet files",
            )


def prepare_tables(cut: CutApplication, tables: Mapping[str, Table], executor: Executor) -> None:
    """Create the tables that Spark writes, where they are missing. Raises ``ConfigError`` for one that has other
    columns or cannot be created, and if the executor is not Spark's."""
    for topic, table in tables.items():
        if isinstance(table, SparkTable):
            executor.prepare_table(table, _schema(cut, topic))


def _schema(cut: CutApplication, topic: str) -> Arrow:
    return RecordColumns.of(cut.application, topic).schema


def _require_a_table_each(tables: Mapping[str, Table]) -> None:
    for (one, table), (other, same) in combinations(tables.items(), 2):
        if in_catalog(table) != in_catalog(same):
            continue
        places = place_of(table), place_of(same)
        if same_place(*places):
            raise ConfigError(
                f"topics {one} and {other} cannot be emitted to one table",
                why="its rows would not say of which topic they are",
                hint="name a table for each topic",
            )
        if overlapping(*places):
            raise ConfigError(
                f"the tables of topics {one} and {other} cannot be in one another's folders",
                why="readers of the outer one would get the rows of the inner one, too",
                hint="name two folders, neither of which is in the other",
            )


def place_of(table: Table) -> str:
    """The folder of a table, or its name in a catalog."""
    return table.place if isinstance(table, SparkTable) else fspath(table)


def in_catalog(table: Table) -> bool:
    """Whether the place of a table is a name in a catalog, and not a folder."""
    return isinstance(table, SparkTable) and table.format == "iceberg" and "/" not in table.place


def _require_sink(cut: CutBackfill, topic: str) -> None:
    known = {topic for one in cut.plan.slices for topic in one.sinks}
    sinks = (
        node for sub in cut.loaded.built.subtopologies for node in sub.nodes if isinstance(node, SinkNode)
    )
    # Where topics are chosen for each record, any may be written to.
    chosen = any(sink.topic is None for sink in sinks)
    if not chosen and topic not in {*known, cut.loaded.config.errors_dead_letter_queue_topic_name}:
        raise TopicError(
            f"the application does not write to topic {topic}", **not_among(topic, known, "it writes to")
        )


def _check_folder(folder: Folder, schema: Arrow) -> None:
    """Raises ``ConfigError`` for a place that is not a folder of Parquet files with these columns."""
    if not folder.exists(""):
        return
    files = folder.files((".parquet",))
    if files == [""]:
        raise ConfigError(
            f"{folder.shown} is a file, not a folder", hint="name a folder for the Parquet files"
        )
    if folder.exists("_delta_log"):
        raise ConfigError(
            f"{folder.shown} is a table of Delta",
            why="readers of Delta do not see files that are not in the table's log",
            hint="emit to it as a table: --emit TOPIC=delta:FOLDER, SparkTable('delta', ...)",
        )
    # The others are of the same columns, or somebody else has mixed them.
    for file in files[:1]:
        found = _schema_of(folder, file)
        if not found.equals(schema):
            raise ConfigError(
                f"the Parquet files in {folder.shown} have other columns than the records",
                why=f"{file} has {_columns(found)}; the records have {_columns(schema)}",
                hint="name another folder",
            )


def _schema_of(folder: Folder, file: str) -> Arrow:
    try:
        with folder.open_file(file) as opened:
            return pq.read_schema(opened)
    except pa.ArrowInvalid as error:
        raise ConfigError(
            f"a file in {folder.shown} is not a Parquet file, or is damaged",
            where=file,
            why=str(error).splitlines()[0],
            hint="name another folder",
        ) from None


def _columns(schema: Arrow) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _append(result: BackfillResult, topic: str, table: Table) -> int:
    count = sum(records for partition, records in result.written().items() if partition.topic == topic)
    if not count:
        return 0
    rows, selection = result.emitted_rows(topic), result.sink_rows(topic)
    name = f"{result.manifest.backfill_id}-{topic}"
    if isinstance(table, SparkTable):
        batch = TableBatch(f"pystreams-{name}", result.manifest.cut_time_ms)
        result.executor.append_to_table(result.staging, selection, rows, table, batch)
    else:
        result.for_each_partition(selection, AppendToFolder(Folder(fspath(table)), name, rows))
    return count
