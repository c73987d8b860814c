"""``pystreams backfill``: history over an application's own topology, and a hand-over to the live application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from pystreams.cli.options import (
    RUNS_PANEL,
    ApplicationArgument,
    ApplicationIdOption,
    BootstrapServersOption,
    EmbeddedLogOption,
    MasterOption,
    SetOption,
    SparkConfOption,
    StateDirOption,
)
from pystreams.cli.terminal.logs import LogOptions, log_to_stderr

READS_PANEL = "What it reads"
LEAVES_PANEL = "What it leaves"


def backfill(
    application: ApplicationArgument,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="[TOPIC=]KIND[:PLACE]",
            help="Where a topic's history is: [bold]kafka[/], [bold]embedded[/], or files in a folder:"
            " [bold]parquet:FOLDER[/], [bold]json:FOLDER[/], [bold]csv:FOLDER[/]. Without TOPIC: of all others."
            " May stand several times. Default: the log that the application runs on.",
            show_default=False,
            rich_help_panel=READS_PANEL,
        ),
    ] = None,
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="now|TIME|OFFSETS",
            help="Where reading ends: at what is there now, before the first record of an event time"
            " ([bold]2013-11-01[/]), or before offsets ([bold]orders-0=120,orders-1=98[/]).",
            rich_help_panel=READS_PANEL,
        ),
    ] = "now",
    previous: Annotated[
        str | None,
        typer.Option(
            "--previous",
            metavar="PATH",
            help="Go on from an earlier backfill: where that one was staged.",
            show_default=False,
            rich_help_panel=READS_PANEL,
        ),
    ] = None,
    from_snapshot: Annotated[
        str | None,
        typer.Option(
            "--from-snapshot",
            metavar="FOLDER",
            help="Compute nothing: hand over what an earlier backfill has left in a snapshot.",
            show_default=False,
            rich_help_panel=READS_PANEL,
        ),
    ] = None,
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Read files whose records have no offsets: as they stand, files in the order of their names."
            " Nothing can be handed over then.",
            rich_help_panel=READS_PANEL,
        ),
    ] = False,
    hand_over: Annotated[
        str,
        typer.Option(
            "--hand-over",
            metavar="kafka|embedded|snapshot[:FOLDER]|none",
            help="Where the live application goes on from: its log, or a folder from which it restores.",
            rich_help_panel=LEAVES_PANEL,
        ),
    ] = "none",
    emit: Annotated[
        str,
        typer.Option(
            "--emit",
            metavar="topic|parquet:FOLDER|none",
            help="Where the records for output topics go: to these topics, or to files.",
            rich_help_panel=LEAVES_PANEL,
        ),
    ] = "none",
    master: MasterOption = "local[*]",
    spark_conf: SparkConfOption = None,
    py_files: Annotated[
        str,
        typer.Option(
            "--py-files",
            metavar="FILE[,...]",
            help="Python files, or zip files of packages, that Spark's workers need to import the application.",
            show_default=False,
            rich_help_panel=RUNS_PANEL,
        ),
    ] = "",
    staging: Annotated[
        str | None,
        typer.Option(
            "--staging",
            metavar="PATH",
            help="Where slices are staged: a folder, or any place that Spark can write to."
            " Default: .pystreams/backfill/APPLICATION",
            show_default=False,
            rich_help_panel=RUNS_PANEL,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with what is staged, at its own cut: slices that are done are not computed again.",
            rich_help_panel=RUNS_PANEL,
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Begin anew, in place of what is staged.", rich_help_panel=RUNS_PANEL
        ),
    ] = False,
    commit_records: Annotated[
        int | None,
        typer.Option(
            "--commit-records",
            min=1,
            help="Records between two commits of a task; each flushes its caches. Default: 10000",
            show_default=False,
            rich_help_panel=RUNS_PANEL,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan, and do nothing.", rich_help_panel=RUNS_PANEL)
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Also log what is done, and what Spark says.", rich_help_panel=RUNS_PANEL
        ),
    ] = False,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    state_dir: StateDirOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Compute an application's state from history, on Spark.

    The topology is the application's own, so are its state and its results.
    With --hand-over the live application goes on where history was cut. Input
    is read from its log, or from archives that pystreams archive has made.

    [bold]pystreams backfill apps.flights --dry-run[/]

    [bold]pystreams backfill apps.flights --source parquet:/archive --until 2013-11-01 --hand-over embedded[/]

    [bold]pystreams backfill apps.flights --master none --emit parquet:results[/]
    """
    from pystreams.cli.commands.backfill.job import run_backfill
    from pystreams.cli.commands.backfill.options import BackfillOptions

    log_to_stderr(LogOptions(verbose))
    options = BackfillOptions(
        application=application,
        sources=source or [],
        until=until,
        previous=previous,
        from_snapshot=from_snapshot,
        approximate=approximate,
        hand_over=hand_over,
        emit=emit,
        master=master,
        spark_conf=spark_conf or [],
        py_files=_names(py_files),
        staging=staging,
        resume=resume,
        overwrite=overwrite,
        commit_records=commit_records,
        verbose=verbose,
        flags={
            "application_id": application_id,
            "state_dir": None if state_dir is None else str(state_dir),
            "embedded_log": None if embedded_log is None else str(embedded_log),
            "bootstrap_servers": bootstrap_servers,
        },
        settings=setting or [],
    )
    run_backfill(options, dry_run=dry_run)


def _names(text: str) -> Sequence[str]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
