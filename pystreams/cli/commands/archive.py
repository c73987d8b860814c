"""``pystreams archive``: copies topics to Parquet or to tables, for later backfills."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from pystreams.cli.application.settings import parse_pairs
from pystreams.cli.masters import AUTO, SPARK_HERE, Master
from pystreams.cli.options import (
    CONF_EXAMPLE,
    RUNS_PANEL,
    BootstrapServersOption,
    EmbeddedLogOption,
    SparkConfOption,
    StepsOption,
)
from pystreams.cli.spark import NO_SPARK, require_packages
from pystreams.cli.terminal.console import note
from pystreams.cli.terminal.logs import LogOptions, log_to_stderr
from pystreams.cli.terminal.progress import display_for
from pystreams.cli.terminal.stopping import stopping
from pystreams.clock import SystemClock
from pystreams.errors import ConfigError
from pystreams.meter import Meter

if TYPE_CHECKING:
    from pystreams.backfill.archive.archive import Archiver, ArchiveResult, ChooseArchiver
    from pystreams.backfill.archive.target import ArchiveTarget
    from pystreams.backfill.sources import Source


#: The output of Spark goes to this file, not between the progress lines.
SPARK_LOG = Path(".pystreams") / "archive" / "spark.log"


#: This process writes fewer offsets than this before Spark has started and written them.
FEW_OFFSETS: Final = 20_000_000


class ArchiveFormat(StrEnum):
    """Who else can read the archive."""

    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"


def archive(
    topics: Annotated[
        list[str], typer.Argument(metavar="TOPIC...", help="The topics to archive.", show_default=False)
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="The archive: a folder, or a URI such as [bold]s3://bucket/archive[/]; of Iceberg the table, as "
            "[bold]CATALOG.NAMESPACE.TABLE[/]. Records are appended to an archive that exists.",
            show_default=False,
        ),
    ],
    format: Annotated[
        ArchiveFormat,
        typer.Option(
            "--format",
            help="Files in Parquet, or a table of Delta Lake or Iceberg, whose small files are merged.",
        ),
    ] = ArchiveFormat.PARQUET,
    master: Annotated[
        str,
        typer.Option(
            "--master",
            metavar="auto|none|SPARK",
            help="Where to run: in this process, or on Spark's master. [bold]auto[/]: in this process, but for very "
            "many records.",
            rich_help_panel=RUNS_PANEL,
        ),
    ] = AUTO,
    spark_conf: SparkConfOption = None,
    verbose: StepsOption = False,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Append topics to an archive, from which backfills read records that the log has deleted.

    Each run appends the records since the last one, exactly once: run it before
    retention deletes records, and again if it was killed. The archive has one folder
    for each topic and partition; Spark and other tools read it as one table.

    [bold]pystreams archive flights weather --to archive[/]

    [bold]pystreams archive orders --to s3://bucket/archive --bootstrap-servers broker:9092[/]

    [bold]pystreams archive orders --to lake.shop.archive --format iceberg[/]

    [bold]pystreams backfill apps.flights --source parquet:archive[/]
    """
    logs = LogOptions(verbose)
    log_to_stderr(logs)
    conf = parse_pairs(spark_conf or [], CONF_EXAMPLE)
    place = before_reading(master, conf)
    if place is None:
        require_packages(spark=False)
    else:
        _check(place, conf)
        require_packages(spark=place.is_spark, connect=place.is_connect)
    from pystreams.backfill.archive.archive import archive as run

    source, clock = _source(embedded_log, bootstrap_servers), SystemClock()
    log = None if verbose else SPARK_LOG
    stopped = "Stopped. The archive holds all committed records: run the command again to continue."
    with stopping(stopped), _choosing(place, conf, log) as choose:
        meter = Meter(clock)
        with display_for(logs, meter, clock) as display:
            display.update("archiving", 0, None)
            result = run(
                source,
                topics,
                _target(format, to),
                archiver=choose,
                progress=lambda records, left: display.update("archiving", records, left),
                clock=clock,
            )
    _show_result(result, to, meter.elapsed_s())


def before_reading(master: str, conf: Mapping[str, str]) -> Master | None:
    """The master that is given, or the only one that will do; None: the number of offsets decides."""
    if master != AUTO:
        return Master(master)
    return Master(SPARK_HERE, "--conf is for Spark") if conf else None


def for_offsets(offsets: int) -> Master:
    """The master for so many offsets."""
    from loky import cpu_count

    if offsets < FEW_OFFSETS or cpu_count() == 1 or find_spec("pyspark") is None:
        return Master(NO_SPARK)
    return Master(SPARK_HERE, f"there are {offsets:,} offsets to archive")


@contextmanager
def _choosing(master: Master | None, conf: Mapping[str, str], log: Path | None) -> Iterator[ChooseArchiver]:
    """Chooses an archiver, which is there until the end."""
    with ExitStack() as stack:
        if master is not None:
            archiver = stack.enter_context(_archiver(master, conf, log))
            yield lambda _: archiver
        else:
            yield lambda offsets: stack.enter_context(_archiver(for_offsets(offsets), conf, log))


def _check(master: Master, conf: Mapping[str, str]) -> None:
    """Raises ``ConfigError`` for a master with which no archive can be written, and for ``conf`` without Spark."""
    if master.is_processes:
        raise ConfigError(
            "archive cannot run in worker processes",
            why="this process or Spark writes an archive",
            hint=f"use --master {NO_SPARK}, or Spark's master (--master '{SPARK_HERE}')",
        )
    master.check({"--conf": conf})


def _target(format: ArchiveFormat, to: str) -> ArchiveTarget:
    match format:
        case ArchiveFormat.PARQUET:
            from pystreams.backfill.archive.folder_target import FolderTarget

            return FolderTarget(to)
        case ArchiveFormat.DELTA:
            from pystreams.backfill.archive.delta_target import DeltaTarget

            return DeltaTarget(to)
        case ArchiveFormat.ICEBERG:
            from pystreams.backfill.archive.iceberg_target import IcebergTarget

            return IcebergTarget(to)


def _source(embedded_log: Path | None, bootstrap_servers: str | None) -> Source:
    from pystreams.backfill.sources import EmbeddedSource, KafkaSource
    from pystreams.config import DEFAULT_EMBEDDED_LOG, merge_settings, settings_from_environment

    if not bootstrap_servers:
        return EmbeddedSource(str(embedded_log or DEFAULT_EMBEDDED_LOG))
    settings: Mapping[str, Any] = merge_settings(settings_from_environment(os.environ))
    return KafkaSource(bootstrap_servers, settings.get("client_settings") or {}, "read_committed")


@contextmanager
def _archiver(master: Master, conf: Mapping[str, str], log: Path | None) -> Iterator[Archiver]:
    from pystreams.backfill.archive.archive import InlineArchiver

    if not master.is_spark:
        yield InlineArchiver()
        return
    from pystreams.backfill import SparkArchiver
    from pystreams.cli.spark import quiet_session

    hint = "correct that, and run the command again: committed records stay in the archive"
    with quiet_session(master.name, "pystreams archive", conf, log, hint, master.why) as session:
        yield SparkArchiver(session)


def _show_result(result: ArchiveResult, to: str, elapsed_s: float) -> None:
    from pystreams.backfill.locations import shown

    place = shown(to)
    if not result.records:
        note(f"No new records: the archive {place} is up to date.")
        return
    records = "1 record" if result.records == 1 else f"{result.records:,} records"
    files = "1 file" if result.files == 1 else f"{result.files:,} files"
    note(f"{records} in {files}, {result.size_bytes / 1e6:,.1f} MB, added to {place} in {elapsed_s:,.1f} s.")
    if result.merged.before:
        note(f"{result.merged.before:,} small files were merged into {result.merged.after:,}.")
