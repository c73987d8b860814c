"""``pystreams verify``: compares the stores of a live application with what its history gives."""

from __future__ import annotations

from typing import Annotated

import typer

from pystreams.cli.options import (
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


def verify(
    application: ApplicationArgument,
    source: SourceOption = None,
    boundary: Annotated[
        str | None,
        typer.Option(
            "--boundary",
            metavar="TIME",
            help="The boundary of the backfill that was handed over, if its history came from a table without offsets: "
            "records before it come from that table, which --source names, later ones from the log.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="How many differences of each store are shown.")
    ] = 20,
    json_: Annotated[bool, typer.Option("--json", help="Print the report as one JSON object.")] = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait",
            metavar="SECONDS",
            min=0,
            help="How long to wait for a moment at which all that the application has read is in its stores.",
        ),
    ] = 10.0,
    master: Annotated[
        str,
        typer.Option(
            "--master",
            metavar="none|processes[N]|SPARK",
            help="Where to compute history: in this process, in N worker processes of this machine, or on Spark's "
            "master.",
            rich_help_panel=RUNS_PANEL,
        ),
    ] = "none",
    spark_conf: SparkConfOption = None,
    py_files: PyFilesOption = "",
    staging: Annotated[
        str | None,
        typer.Option(
            "--staging",
            metavar="PATH",
            help="Where history is computed: a folder, or a URL that Spark can write to. It is kept. Default: a "
            "temporary folder below .pystreams",
            show_default=False,
            rich_help_panel=RUNS_PANEL,
        ),
    ] = None,
    verbose: StepsOption = False,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    state_dir: StateDirOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Compute history again, and compare it with the stores of the live application.

    History ends where the application has committed its offsets; its stores are
    read from their changelogs as they were then. Nothing is written to the log.
    Exit codes: [bold]0[/] all keys are equal; [bold]1[/] some differ.

    [bold]pystreams verify apps.wordcount[/]

    [bold]pystreams verify apps.flights --source parquet:/archive --json[/]
    """
    from pystreams.cli.commands.verify.job import VerifyOptions, run_verify
    from pystreams.cli.spark import file_names

    log_to_stderr(LogOptions(verbose))
    run_verify(
        VerifyOptions(
            application=application,
            sources=source or [],
            boundary=boundary,
            limit=limit,
            json=json_,
            wait_ms=1000 * wait,
            master=master,
            spark_conf=spark_conf or [],
            py_files=file_names(py_files),
            staging=staging,
            verbose=verbose,
            flags=flags_of_place(application_id, state_dir, embedded_log, bootstrap_servers),
            settings=setting or [],
        )
    )
