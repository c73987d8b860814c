"""``pystreams status`` and ``pystreams lag``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from pystreams.cli.commands.status.showing import (
    LAG_COLUMNS,
    STATUS_COLUMNS,
    as_line,
    headline,
    lag_rows,
    status_json,
    status_rows,
    warnings,
)
from pystreams.cli.connection import open_admin, open_broker_of
from pystreams.cli.options import (
    ApplicationArgument,
    ApplicationIdOption,
    BootstrapServersOption,
    EmbeddedLogOption,
    SetOption,
)
from pystreams.cli.terminal.console import note, output, show_table
from pystreams.cli.terminal.exits import Exit
from pystreams.clock import SystemClock

if TYPE_CHECKING:
    from pystreams.runtime.group.application_status import ApplicationStatus

_PAUSE_S = 2.0

WatchOption: TypeAlias = Annotated[
    bool, typer.Option("--watch", "-w", help="Show it every two seconds, until Ctrl-C.")
]
JsonOption: TypeAlias = Annotated[
    bool,
    typer.Option("--json", help="Print everything as one JSON object, with --watch as one in each line."),
]

#: Makes the rows of a table.
Rows: TypeAlias = "Callable[[ApplicationStatus], list[list[str]]]"


def status(
    application: ApplicationArgument,
    watch: WatchOption = False,
    as_json: JsonOption = False,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show who runs an application: its threads, wherever they are, their tasks and standbys, and the records that
    wait for them.

    The log is asked, not the application. Exit code 1 says that nobody runs
    it, or that nobody has one of its tasks.

    [bold]pystreams status apps.wordcount --watch[/]
    """
    place = {"embedded_log": embedded_log, "bootstrap_servers": bootstrap_servers}
    last = _show(
        _looks(application, setting, {"application_id": application_id, **place}, watch=watch),
        STATUS_COLUMNS,
        status_rows,
        as_json=as_json,
        watch=watch,
    )
    if last is not None and last.unassigned and not last.rebalancing:
        raise typer.Exit(Exit.FAILED)


def lag(
    application: ApplicationArgument,
    watch: WatchOption = False,
    as_json: JsonOption = False,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show how far an application is in each partition that it reads: what is committed, the end, and the records in
    between.

    Of a topic that it has not begun, the records count that it will read
    (auto_offset_reset).

    [bold]pystreams lag apps.wordcount[/]
    """
    place = {"embedded_log": embedded_log, "bootstrap_servers": bootstrap_servers}
    _show(
        _looks(application, setting, {"application_id": application_id, **place}, watch=watch),
        LAG_COLUMNS,
        lag_rows,
        as_json=as_json,
        watch=watch,
    )


def _looks(
    application: str, setting: list[str] | None, flags: dict[str, Any], *, watch: bool
) -> Iterator[tuple[ApplicationStatus, str]]:
    """The status and the log's name, once, or every two seconds."""
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.dsl.builder import build_topology
    from pystreams.runtime.group.application_status import application_status

    app = load_application(application)
    config = settings_of(app, setting, **flags)
    built = build_topology(app, config)
    with open_broker_of(config) as broker, open_admin(broker) as admin:
        while True:
            found = application_status(
                admin, built, config.auto_offset_reset, reads_committed=broker.reads_committed
            )
            yield found, broker.description
            if not watch:
                return
            time.sleep(_PAUSE_S)


def _show(
    looks: Iterator[tuple[ApplicationStatus, str]],
    columns: Sequence[str],
    rows: Rows,
    *,
    as_json: bool,
    watch: bool,
) -> ApplicationStatus | None:
    """Show each look, and return the last one. Ctrl-C ends it."""
    last: ApplicationStatus | None = None
    clock, began_ms = SystemClock(), 0.0
    with suppress(KeyboardInterrupt):
        for found, place in looks:
            now_ms = clock.monotonic_ms()
            rate = None if last is None else 1000 * (found.committed - last.committed) / (now_ms - began_ms)
            last, began_ms = found, now_ms
            if as_json:
                print(as_line(status_json(found, place)), flush=True)
                continue
            if watch and output().is_terminal:
                output().clear()
            note(headline(found, place, rate))
            for warning in warnings(found):
                note(warning)
            if found.members or columns == LAG_COLUMNS:
                show_table(columns, rows(found))
    return last
