"""``pystreams backfill``: runs an application's topology on history, and hands the result over to the live
application."""

from __future__ import annotations

from typing import Annotated

import typer

from pystreams.cli.options import (
    READS_PANEL,
    RUNS_PANEL,
    ApplicationArgument,
    ApplicationIdOption,
    BootstrapServersOption,
    EmbeddedLogOption,
    PyFilesOption,
    SetOption,
    SourceOption,
    SparkConfOption,
    StateDirOption,
    StepsOption,
    flags_of_place,
)
from pystreams.cli.terminal.logs import LogOptions, log_to_stderr

LEAVES_PANEL = "Results"


def backfill(
    application: ApplicationArgument,
    source: SourceOption = None,
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="now|TIME|OFFSETS",
            help="Where reading ends: at the current end offsets, before the first record of an event time "
            "([bold]2013-11-01[/]), or before offsets ([bold]orders-0=120,orders-1=98[/]).",
            rich_help_panel=READS_PANEL,
        ),
    ] = "now",
    boundary: Annotated[
        str | None,
        typer.Option(
            "--boundary",
            metavar="TIME",
            help="For tables without offsets: records before this time come from the table, all others from the log, "
            "each by its own timestamp.",
            show_default=False,
            rich_help_panel=READS_PANEL,
        ),
    ] = None,
    previous: Annotated[
        str | None,
        typer.Option(
            "--previous",
            metavar="PATH",
            help="Continue from an earlier backfill: its staging folder.",
            show_default=False,
            rich_help_panel=READS_PANEL,
        ),
    ] = None,
    from_snapshot: Annotated[
        str | None,
        typer.Option(
            "--from-snapshot",
            metavar="FOLDER",
            help="Compute nothing: hand over the snapshot that an earlier backfill has written.",
            show_default=False,
            rich_help_panel=READS_PANEL,
        ),
    ] = None,
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Read files whose records have no offsets, in the order of the files' names. The result "
            "cannot be handed over.",
            rich_help_panel=READS_PANEL,
        ),
    ] = False,
    hand_over: Annotated[
        str,
        typer.Option(
            "--hand-over",
            metavar="kafka|embedded|snapshot[:FOLDER]|none",
            help="Where the live application gets the result from: its log, or a folder from which it "
            "restores its stores.",
            rich_help_panel=LEAVES_PANEL,
        ),
    ] = "none",
    emit: Annotated[
        list[str] | None,
        typer.Option(
            "--emit",
            metavar="topic|parquet:FOLDER|TOPIC=KIND:PLACE|none",
            help="Where to write the records for output topics: to these topics, or to files. Or those for one topic "
            "as rows of a table: [bold]TOPIC=parquet:FOLDER[/], [bold]TOPIC=delta:FOLDER[/], "
            "[bold]TOPIC=iceberg:NAME[/]. May be repeated. Default: nowhere.",
            show_default=False,
            rich_help_panel=LEAVES_PANEL,
        ),
    ] = None,
    master: Annotated[
        str,
        typer.Option(
            "--master",
            metavar="auto|none|processes[N]|SPARK",
            help="Where to run: in this process, in N worker processes of this machine, or on Spark's master. "
            "[bold]auto[/]: on Spark if only Spark can, else in as many processes as are worth their start.",
            rich_help_panel=RUNS_PANEL,
        ),
    ] = "auto",
    spark_conf: SparkConfOption = None,
    py_files: PyFilesOption = "",
    staging: Annotated[
        str | None,
        typer.Option(
            "--staging",
            metavar="PATH",
            help="Where slices are staged: a folder, or a URL that Spark can write to. Default: "
            ".pystreams/backfill/APPLICATION",
            show_default=False,
            rich_help_panel=RUNS_PANEL,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the staged backfill, with its cut: finished slices are not computed again.",
            rich_help_panel=RUNS_PANEL,
        ),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Begin again, and replace the staged backfill.", rich_help_panel=RUNS_PANEL
        ),
    ] = False,
    exact_updates: Annotated[
        bool,
        typer.Option(
            "--exact-updates",
            help="Emit the updates of each commit, as live. Otherwise an aggregation emits the last result of each "
            "key alone, if no other step sees its updates, which is faster. State is the same.",
            rich_help_panel=RUNS_PANEL,
        ),
    ] = False,
    commit_records: Annotated[
        int | None,
        typer.Option(
            "--commit-records",
            min=1,
            help="Records between two commits of a task; each commit flushes the task's caches. Default: "
            "10000",
            show_default=False,
            rich_help_panel=RUNS_PANEL,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the plan, and do nothing else.", rich_help_panel=RUNS_PANEL),
    ] = False,
    json_: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Print the report (with --dry-run the plan) as one JSON object.",
            rich_help_panel=RUNS_PANEL,
        ),
    ] = False,
    verbose: StepsOption = False,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    state_dir: StateDirOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Compute an application's state from history, in parallel.

    It runs the application's own topology, and computes the same state and results.
    With --hand-over the live application continues at the cut, where the backfill
    stopped reading. Input is read from its log, or from archives that pystreams archive has written.

    [bold]pystreams backfill apps.flights --dry-run[/]

    [bold]pystreams backfill apps.flights --source parquet:/archive --until 2013-11-01 --hand-over embedded[/]

    [bold]pystreams backfill apps.flights --master none --emit parquet:results[/]
    """
    from pystreams.cli.commands.backfill.job import run_backfill
    from pystreams.cli.commands.backfill.options import BackfillOptions
    from pystreams.cli.spark import file_names

    log_to_stderr(LogOptions(verbose))
    options = BackfillOptions(
        application=application,
        sources=source or [],
        until=until,
        boundary=boundary,
        previous=previous,
        from_snapshot=from_snapshot,
        approximate=approximate,
        hand_over=hand_over,
        emits=emit or [],
        master=master,
        spark_conf=spark_conf or [],
        py_files=file_names(py_files),
        staging=staging,
        resume=resume,
        overwrite=overwrite,
        exact_updates=exact_updates,
        commit_records=commit_records,
        json=json_,
        verbose=verbose,
        flags=flags_of_place(application_id, state_dir, embedded_log, bootstrap_servers),
        settings=setting or [],
    )
    run_backfill(options, dry_run=dry_run)
