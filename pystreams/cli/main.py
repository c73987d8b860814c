"""Registers the commands, and turns an error into a message and an exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from pystreams.cli.commands.archive import archive
from pystreams.cli.commands.backfill.command import backfill
from pystreams.cli.commands.consume import consume
from pystreams.cli.commands.describe import describe
from pystreams.cli.commands.diff import diff
from pystreams.cli.commands.dlq.command import dlq_app
from pystreams.cli.commands.doctor.command import doctor
from pystreams.cli.commands.init import init
from pystreams.cli.commands.produce import produce
from pystreams.cli.commands.reset import reset
from pystreams.cli.commands.run import run
from pystreams.cli.commands.snapshots import snapshots
from pystreams.cli.commands.status.command import lag, status, threads
from pystreams.cli.commands.stores.command import get, scan
from pystreams.cli.commands.topics import topics_app
from pystreams.cli.commands.verify.command import verify
from pystreams.cli.terminal.exits import Exit, end_now, exit_of
from pystreams.cli.terminal.logs import take_down_logs
from pystreams.cli.terminal.show_error import show_error
from pystreams.errors import CloseTimeoutError, StreamsError

app = typer.Typer(
    name="pystreams",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    epilog="Exit codes: 0 done, 1 failed while running, 2 wrong usage, 3 wrong application, 4 the log "
    "refused it, 130 interrupted, 143 ended by SIGTERM.",
)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    from pystreams.cli.versions import version_lines

    print(*version_lines(), sep="\n")
    raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the versions and exit."
        ),
    ] = False,
) -> None:
    """Kafka Streams for Python.

    Everything below works with nothing installed: records are in an embedded
    log, the file .pystreams/log.db.

    [bold]pystreams init shop[/] begins a project of your own. By hand:

    [bold]pystreams topics create lines word-counts[/]

    [bold]echo 'to be or not to be' | pystreams produce lines[/]

    [bold]pystreams run apps.wordcount --until-caught-up[/]

    [bold]pystreams consume word-counts[/]
    """


app.command(rich_help_panel="Applications")(init)
app.command(rich_help_panel="Applications")(run)
app.command(rich_help_panel="Applications")(doctor)
app.command(rich_help_panel="Applications")(status)
app.command(rich_help_panel="Applications")(lag)
app.command(rich_help_panel="Applications")(threads)
app.command(rich_help_panel="Applications")(get)
app.command(rich_help_panel="Applications")(scan)
app.command(rich_help_panel="Applications")(describe)
app.command(rich_help_panel="Applications")(diff)
app.command(rich_help_panel="Applications")(reset)
app.command(rich_help_panel="Applications")(backfill)
app.command(rich_help_panel="Applications")(verify)
app.command(rich_help_panel="Applications")(snapshots)
app.add_typer(topics_app, name="topics", rich_help_panel="Records")
app.command(rich_help_panel="Records")(produce)
app.command(rich_help_panel="Records")(consume)
app.command(rich_help_panel="Records")(archive)
app.add_typer(dlq_app, name="dlq", rich_help_panel="Records")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code. ``arguments`` None: those of the process."""
    try:
        app(args=None if arguments is None else list(arguments))
    except StreamsError as error:
        show_error(error, sys.argv[1:] if arguments is None else arguments)
        if isinstance(error, CloseTimeoutError):
            take_down_logs()
            end_now(exit_of(error))
        sys.exit(exit_of(error))
    finally:
        take_down_logs()
        if arguments is None:
            # The command has ended: Ctrl-C could only spoil its exit code while the interpreter shuts down.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(Exit.OK)
