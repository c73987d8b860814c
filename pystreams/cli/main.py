"""Registers the commands, and turns an error into a message and an exit code."""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from pystreams.cli.garbage import collect_rarely
from pystreams.cli.negative_numbers import CommandWithNumbers
from pystreams.cli.terminal.exits import Exit, end_now, exit_of
from pystreams.cli.terminal.logs import take_down_logs
from pystreams.cli.terminal.show_error import show_error
from pystreams.errors import StreamsError


@dataclass(frozen=True)
class _Command:
    """Where a command is: a function of its name, or as ``group`` a ``Typer`` with commands of its own. ``panel``: its
    heading in ``--help``. ``numbers``: its last argument may be a negative number."""

    name: str
    module: str
    panel: str
    group: bool = False
    numbers: bool = False

    def join(self, app: typer.Typer) -> None:
        """Have ``app`` offer it."""
        module = importlib.import_module(f"pystreams.cli.commands.{self.module}")
        if self.group:
            app.add_typer(getattr(module, f"{self.name}_app"), name=self.name, rich_help_panel=self.panel)
        else:
            kind = CommandWithNumbers if self.numbers else TyperCommand
            app.command(cls=kind, rich_help_panel=self.panel)(getattr(module, self.name))


#: In the order of ``--help``.
_COMMANDS: Final = (
    _Command("init", "init", "Applications"),
    _Command("run", "run", "Applications"),
    _Command("doctor", "doctor.command", "Applications"),
    _Command("status", "status.command", "Applications"),
    _Command("lag", "status.command", "Applications"),
    _Command("threads", "status.command", "Applications"),
    _Command("get", "stores.command", "Applications", numbers=True),
    _Command("scan", "stores.command", "Applications"),
    _Command("describe", "describe", "Applications"),
    _Command("diff", "diff", "Applications"),
    _Command("reset", "reset", "Applications"),
    _Command("backfill", "backfill.command", "Applications"),
    _Command("verify", "verify.command", "Applications"),
    _Command("snapshots", "snapshots", "Applications"),
    _Command("monitoring", "monitoring.command", "Applications", group=True),
    _Command("topics", "topics", "Records", group=True),
    _Command("produce", "produce", "Records"),
    _Command("consume", "consume", "Records"),
    _Command("archive", "archive", "Records"),
    _Command("dlq", "dlq.command", "Records", group=True),
)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    from pystreams.cli.versions import version_lines

    print(*version_lines(), sep="\n")
    raise typer.Exit


def _common(
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


def _application(commands: Sequence[_Command]) -> typer.Typer:
    app = typer.Typer(
        name="pystreams",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
        epilog="Exit codes: 0 done, 1 failed while running, 2 wrong usage, 3 wrong application, 4 the log "
        "refused it, 130 interrupted, 143 ended by SIGTERM.",
    )
    app.callback()(_common)
    for command in commands:
        command.join(app)
    return app


def command_for(arguments: Sequence[str]) -> TyperGroup:
    """``pystreams`` with the command that is named first, or else with all commands: to load all takes a fifth of the
    time of a short command. It is built once, because one process, such as a notebook, may run many command lines."""
    named = tuple(command for command in _COMMANDS if command.name in arguments[:1])
    return _built(named or _COMMANDS)


@cache
def _built(commands: tuple[_Command, ...]) -> TyperGroup:
    built = typer.main.get_command(_application(commands))
    assert isinstance(built, TyperGroup)
    return built


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its code. ``arguments`` None: those of the process."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if arguments is None:
        collect_rarely()
    try:
        command = command_for(given)
        if arguments is None and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            # Until here Ctrl-C has ended the process. From here on typer, or the command, does.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command(args=given)
    except StreamsError as error:
        show_error(error, given)
        if error.threads_at_work:
            take_down_logs()
            end_now(exit_of(error))
        sys.exit(exit_of(error))
    except KeyboardInterrupt:
        # Before typer listens, or while it ends.
        sys.exit(Exit.INTERRUPTED)
    finally:
        take_down_logs()
        if arguments is None:
            # The command has ended: Ctrl-C could only spoil its exit code while the interpreter shuts down.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(Exit.OK)
