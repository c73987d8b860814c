"""The choice of ``--master auto``: Spark where only Spark will do, else as many processes as are worth their start."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from pystreams.backfill.locations import is_url, shown
from pystreams.cli.commands.backfill.options import BackfillOptions
from pystreams.cli.masters import AUTO, SPARK_HERE, Master
from pystreams.cli.spark import NO_SPARK
from pystreams.errors import StateError

if TYPE_CHECKING:
    from pystreams.backfill.compute.driver import Planned
    from pystreams.backfill.sources import DataFrameSource

#: Fewer records than this are computed by one process before others have started.
FEW_RECORDS: Final = 50_000


def before_the_plan(
    options: BackfillOptions, tables: Mapping[str, DataFrameSource], written: Collection[str], staging: str
) -> Master | None:
    """The master that is given, or Spark if only Spark can run this backfill; None: the plan decides. ``tables`` are
    the sources that are tables, by topic; ``written`` are the topics whose records go into tables that Spark writes.
    Raises ``StateError`` for a staging folder that cannot be read, or that Spark cannot continue."""
    if options.master != AUTO:
        return Master(options.master)
    why = _why_spark(options, tables, written, staging)
    if why and options.resume and not is_url(staging) and _staged_by_spark(staging) is False:
        raise StateError(
            f"the backfill in {shown(staging)} was begun without Spark, and Spark cannot continue it",
            why=f"it would run on Spark now, because {why}",
            hint="begin it again on Spark (--overwrite), or leave that out",
        )
    return Master(SPARK_HERE, why) if why else None


def for_plan(planned: Planned) -> Master:
    """The master for a plan that does not need Spark: this process, or several of this machine."""
    expected = sum(records or 0 for records in planned.expected_records().values())
    tasks = max((one.tasks for one in planned.plan.slices), default=1)
    if tasks == 1:
        return Master(NO_SPARK, "its slices have one task each")
    if expected < FEW_RECORDS:
        return Master(NO_SPARK, f"{expected:,} records are soon computed")
    from loky import cpu_count

    count = min(cpu_count(), tasks)
    if count == 1:
        return Master(NO_SPARK, "this machine has one core")
    return Master(f"processes[{count}]", f"it has {expected:,} records and up to {tasks} tasks at a time")


def _why_spark(
    options: BackfillOptions, tables: Mapping[str, DataFrameSource], written: Collection[str], staging: str
) -> str:
    """Why only Spark can run a backfill; empty if others can, too."""
    from pystreams.backfill.sources import SparkTable

    for topic, source in sorted(tables.items()):
        if source.needs_spark:
            return f"topic {topic} comes from a table that only Spark reads"
        if isinstance(source.frame, SparkTable) and is_url(source.frame.place):
            # Spark may have been set up for the place; whoever knows better names another master.
            return f"topic {topic} comes from a table at a URL"
    if written:
        return f"only Spark writes the table for {min(written)}"
    if options.spark_conf or options.py_files:
        return "--conf and --py-files are for Spark"
    if is_url(staging):
        return "the staging folder is a URL"
    if options.resume and _staged_by_spark(staging):
        return "Spark began this backfill"
    if options.previous is not None:
        if is_url(options.previous):
            return f"{shown(options.previous)} is a URL"
        if _staged_by_spark(options.previous):
            return "Spark computed the earlier backfill"
    return ""


def _staged_by_spark(location: str) -> bool | None:
    """Whether Spark has staged the slices in a folder; None: there are none."""
    from pystreams.backfill.staging.local import LocalStaging

    staging = LocalStaging(location)
    manifest = staging.read_manifest()
    if manifest is None or not manifest.folders:
        return None
    return any(map(staging.is_of_another_executor, manifest.folders.values()))
