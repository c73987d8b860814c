"""Arguments and options that several commands share. Flags override the environment, which overrides the
application."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from pystreams.cli.terminal.logs import LogFormat

LOG_PANEL = "Where the records are"
READS_PANEL = "Input"
RUNS_PANEL = "How it runs"
HTTP_PANEL = "Over HTTP"

#: An example of a value of ``--conf``.
CONF_EXAMPLE = "spark.driver.memory=4g"

ApplicationArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="MODULE[:ATTR]",
        help="The application: a module ([bold]apps.wordcount[/]), one of its attributes "
        "([bold]apps.wordcount:app[/]),"
        " or a file ([bold]apps/wordcount.py[/]). Without ATTR: [bold]app[/], or the only application in the "
        "module.",
        show_default=False,
    ),
]

EmbeddedLogOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--embedded-log",
        metavar="FILE",
        envvar="PYSTREAMS_EMBEDDED_LOG",
        help="The file of the embedded log. Default: .pystreams/log.db",
        show_default=False,
        rich_help_panel=LOG_PANEL,
    ),
]

BootstrapServersOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        metavar="HOST:PORT[,...]",
        envvar="PYSTREAMS_BOOTSTRAP_SERVERS",
        help="Addresses of a Kafka cluster. Default: the embedded log.",
        show_default=False,
        rich_help_panel=LOG_PANEL,
    ),
]

StateDirOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="FOLDER",
        envvar="PYSTREAMS_STATE_DIR",
        help="Where tasks keep their stores. Default: .pystreams/state",
        show_default=False,
    ),
]

ApplicationIdOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--application-id",
        metavar="NAME",
        envvar="PYSTREAMS_APPLICATION_ID",
        help="The name of the consumer group, internal topics and state; required for a Topology that does "
        "not have one.",
        show_default=False,
    ),
]

SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="NAME=VALUE",
        help="Any setting, by its name in Kafka Streams with underscores: [bold]-s "
        "commit_interval_ms=1000[/]. May be repeated. The same in the environment: "
        "PYSTREAMS_COMMIT_INTERVAL_MS=1000.",
        show_default=False,
    ),
]

HttpOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--http",
        metavar="HOST:PORT",
        envvar="PYSTREAMS_HTTP",
        help="Serve /metrics for Prometheus, /live, /ready, /lag, and the stores at /stores. A port alone is of this "
        "machine only. Needs the extra [bold]http[/].",
        show_default=False,
        rich_help_panel=HTTP_PANEL,
    ),
]

HttpTokenOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--http-token-file",
        metavar="FILE",
        envvar="PYSTREAMS_HTTP_TOKEN_FILE",
        help="Serve stores only to requests with the token in this file (Authorization: Bearer). Metrics and health "
        "need none.",
        show_default=False,
        rich_help_panel=HTTP_PANEL,
    ),
]

HttpOpenOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--http-open",
        envvar="PYSTREAMS_HTTP_OPEN",
        help="Serve stores without a token at an address that others than this machine reach.",
        rich_help_panel=HTTP_PANEL,
    ),
]

HttpCertificateOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--http-cert",
        metavar="FILE",
        envvar="PYSTREAMS_HTTP_CERT",
        help="Serve HTTPS, with the certificate in this file (PEM).",
        show_default=False,
        rich_help_panel=HTTP_PANEL,
    ),
]

HttpKeyOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--http-key",
        metavar="FILE",
        envvar="PYSTREAMS_HTTP_KEY",
        help="The key of the certificate (PEM, without a password).",
        show_default=False,
        rich_help_panel=HTTP_PANEL,
    ),
]

HttpCaOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--http-ca",
        metavar="FILE",
        envvar="PYSTREAMS_HTTP_CA",
        help="The authority that signed the certificates of the other instances (PEM). Default: those that the system "
        "trusts, and the certificate in --http-cert itself",
        show_default=False,
        rich_help_panel=HTTP_PANEL,
    ),
]

HttpClientCaOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--http-client-ca",
        metavar="FILE",
        envvar="PYSTREAMS_HTTP_CLIENT_CA",
        help="Answer only those who show a certificate that this authority has signed (PEM). The other instances show "
        "theirs.",
        show_default=False,
        rich_help_panel=HTTP_PANEL,
    ),
]

ReadyLagOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--ready-lag",
        metavar="RECORDS",
        min=0,
        envvar="PYSTREAMS_READY_LAG",
        help="The application is ready only while so many records wait at most. Default: any number",
        show_default=False,
        rich_help_panel=HTTP_PANEL,
    ),
]

OtelOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--otel",
        envvar="PYSTREAMS_OTEL",
        help="Send metrics and traces to an OpenTelemetry collector, as the OTEL_... variables of the environment say. "
        "Needs the extra [bold]otel[/].",
    ),
]

QuietOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print only warnings, errors, and at the end the number of records that were left out.",
    ),
]

LogFormatOption: TypeAlias = Annotated[
    LogFormat,
    typer.Option(
        "--log-format",
        envvar="PYSTREAMS_LOG_FORMAT",
        help="The format of standard error: text, or one JSON object per line. Default: text",
        show_default=False,
    ),
]

YesOption: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

SparkConfOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        help=f"A setting of Spark: [bold]--conf {CONF_EXAMPLE}[/]. May be repeated.",
        show_default=False,
        rich_help_panel=RUNS_PANEL,
    ),
]

StepsOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--verbose", "-v", help="Also log each step, and the output of Spark.", rich_help_panel=RUNS_PANEL
    ),
]

PyFilesOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--py-files",
        metavar="FILE[,...]",
        help="Python files, or zip files of packages, that Spark's workers need to import the application.",
        show_default=False,
        rich_help_panel=RUNS_PANEL,
    ),
]

SourceOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        metavar="[TOPIC=]KIND[:PLACE]",
        help="The source of a topic's history: [bold]kafka[/], [bold]embedded[/], or files in a folder: "
        "[bold]parquet:FOLDER[/], [bold]json:FOLDER[/], [bold]csv:FOLDER[/]; or an archive in a table: "
        "[bold]delta:FOLDER[/], [bold]iceberg:CATALOG.NAMESPACE.TABLE[/]; or any table: "
        "[bold]'parquet:FOLDER?key=COLUMN&timestamp=COLUMN'[/], and what Spark reads: [bold]table:NAME[/], "
        "[bold]iceberg:[/], [bold]delta:[/], [bold]orc:[/], [bold]jdbc:[/]. Without TOPIC: the source "
        "of all other topics. May be repeated. Default: the log that the application runs on.",
        show_default=False,
        rich_help_panel=READS_PANEL,
    ),
]


def flags_of_place(
    application_id: str | None,
    state_dir: Path | None,
    embedded_log: Path | None,
    bootstrap_servers: str | None,
) -> dict[str, Any]:
    """The flags that identify an application and its log, as settings."""
    return {
        "application_id": application_id,
        "state_dir": None if state_dir is None else str(state_dir),
        "embedded_log": None if embedded_log is None else str(embedded_log),
        "bootstrap_servers": bootstrap_servers,
    }
