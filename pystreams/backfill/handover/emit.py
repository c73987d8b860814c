"""Writes the records of a backfill for sinks to their target: Parquet files, the topics themselves, or tables.

Each record is written once, even if the work is repeated. Partitions are written where the executor works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from os import PathLike, fspath

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.handover.checks import require_no_members
from pystreams.backfill.handover.cut_backfill import CutBackfill
from pystreams.backfill.handover.emit_to_files import EmitToFolder
from pystreams.backfill.handover.emit_to_tables import Table, emit_to_tables
from pystreams.backfill.handover.emit_to_topics import EmitToTopic, make_marks
from pystreams.backfill.handover.retention import expired_outputs, refuse
from pystreams.backfill.plan.slices import BackfillPlan
from pystreams.backfill.sources.folder import Folder
from pystreams.broker.port import Admin, Broker, TopicDescription
from pystreams.clock import Clock, SystemClock
from pystreams.errors import TopicError


def emit(
    result: BackfillResult,
    to: str | PathLike[str] | Broker | Mapping[str, Table],
    clock: Clock | None = None,
) -> dict[str, int]:
    """Write the records of all sinks, or of those that ``to`` names; gives their number by topic. Done again, it
    changes nothing.

    ``to`` is a folder (a path, or a URL of a file system that pyarrow knows) for an archive of Parquet files that a
    ``ParquetSource`` reads, or a log whose topics of these names get the records, in transactions. Where the backfill
    is handed over to that log, let the hand-over do it (``hand_over(..., emit=True)``): then the application cannot
    start in between.

    Or ``to`` has a table for each of some topics, which gets their records with the columns of ``result.emitted``: a
    folder for Parquet files, or a ``SparkTable`` of the format ``iceberg`` or ``delta`` (with ``SparkExecutor``), which
    is created if it is missing. Rows that others have written to it stay.

    Raises ``BrokerError`` while the application runs on that log, ``TopicError`` for topics that do not fit,
    ``RetentionError`` for those that would delete the records right after they are written; ``ConfigError`` for tables
    that have other columns or cannot be written, ``StateError`` if nothing can be written to them.
    """
    if isinstance(to, Mapping):
        return emit_to_tables(result, to)
    if isinstance(to, str | PathLike):
        archive = EmitToFolder(Folder(fspath(to)), result.manifest.backfill_id)
        return {topic: _each(result, topic, archive.to(topic)) for topic in _written(result)}
    with closing(to.admin()) as admin:
        require_no_members(admin, result.plan.application_id, to.description)
        found = check_emit(result, to, admin)
        refuse([*expired_outputs(result, found, (clock or SystemClock()).now_ms())], result, to)
    return emit_to_topics(result, to)


def emit_to_topics(result: BackfillResult, broker: Broker, *, attempt: str | None = None) -> dict[str, int]:
    """Write the records to output topics that were checked. ``attempt`` is that of the hand-over that does it.

    Raises ``StateError`` if another hand-over has begun since.
    """
    application_id, backfill_id = result.plan.application_id, result.manifest.backfill_id
    topics = _written(result)
    with closing(broker.admin()) as admin:
        marks = {topic: make_marks(admin, application_id, topic) for topic in topics}
    return {
        topic: _each(
            result,
            topic,
            EmitToTopic(broker.opener(), application_id, topic, backfill_id, marks[topic], attempt),
        )
        for topic in topics
    }


def _each(result: BackfillResult, topic: str, work: Callable[[int, Iterator[Arrow]], bytes]) -> int:
    return sum(int(count) for count in result.for_each_partition(result.sink_rows(topic), work))


def _written(result: BackfillResult) -> list[str]:
    """The topics for which there are records, sorted."""
    return sorted({partition.topic for partition in result.written()})


# Checks


def check_emit(cut: CutBackfill, broker: Broker, admin: Admin) -> Mapping[str, TopicDescription]:
    """The topics of a log that will get records. Before the computation, these are the topics that the plan knows;
    afterwards, the topics for which there are records.

    Raises ``TopicError`` for topics that are missing or have another number of partitions.
    """
    topics = sorted({topic for one in cut.plan.slices for topic in one.sinks})
    if isinstance(cut, BackfillResult):
        topics = _written(cut)
    found = admin.describe_topics(topics)
    for topic in topics:
        _check_width(topic, cut.plan, found.get(topic), broker)
    return found


def _check_width(topic: str, plan: BackfillPlan, found: TopicDescription | None, broker: Broker) -> None:
    wanted = plan.partitions_of(topic)
    if found is None:
        raise TopicError(
            f"there is no topic {topic} for the records of the backfill",
            where=broker.description,
            hint=f"pystreams topics create {topic} --partitions {wanted}",
        )
    if found.partitions != wanted:
        raise TopicError(
            f"topic {topic} has {found.partitions} partitions, the backfill writes {wanted}",
            where=broker.description,
            why="the partition of a record depends on the number of partitions",
            hint="begin again (overwrite): the new plan uses the topic's number of partitions. Or create the topic "
            f"again with {wanted} partitions",
        )
