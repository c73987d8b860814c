"""``pystreams status``, ``pystreams lag`` and ``pystreams threads``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from pystreams.cli.commands.status.look import Looks, StatusLook
from pystreams.cli.commands.status.showing import (
    LAG_COLUMNS,
    STATUS_COLUMNS,
    as_line,
    headline,
    instance_notes,
    lag_rows,
    status_json,
    status_rows,
    warnings,
)
from pystreams.cli.commands.status.threads import THREAD_COLUMNS, silent_notes, thread_rows, threads_json
from pystreams.cli.connection import open_admin, open_broker_of
from pystreams.cli.https import CaOption, CertificateOption, KeyOption, tls_of
from pystreams.cli.options import (
    ApplicationArgument,
    ApplicationIdOption,
    BootstrapServersOption,
    EmbeddedLogOption,
    SetOption,
    flags_of_place,
)
from pystreams.cli.terminal.console import note, output, show_table
from pystreams.cli.terminal.exits import Exit
from pystreams.clock import SystemClock

if TYPE_CHECKING:
    import ssl

_PAUSE_S = 2.0

WatchOption: TypeAlias = Annotated[
    bool, typer.Option("--watch", "-w", help="Show it every two seconds, until Ctrl-C.")
]
JsonOption: TypeAlias = Annotated[
    bool,
    typer.Option("--json", help="Print everything as one JSON object, with --watch as one in each line."),
]

UrlsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Ask an instance here about its threads: https://HOST:PORT, HOST:PORT, or a port of this machine. May be "
        "repeated. Default: where the group has instances with --http",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class _View:
    """The ways in which a command shows its result: a table, notes before it, JSON."""

    columns: Sequence[str]
    rows: Callable[[StatusLook], list[list[str]]]
    notes: Callable[[StatusLook], Iterable[str]]
    as_json: Callable[[StatusLook], dict[str, Any]]


_STATUS = _View(STATUS_COLUMNS, status_rows, instance_notes, status_json)
_LAG = _View(LAG_COLUMNS, lag_rows, lambda _: (), status_json)
_THREADS = _View(THREAD_COLUMNS, thread_rows, silent_notes, threads_json)


def status(
    application: ApplicationArgument,
    watch: WatchOption = False,
    as_json: JsonOption = False,
    urls: UrlsOption = None,
    ca: CaOption = None,
    cert: CertificateOption = None,
    key_file: KeyOption = None,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show who runs an application: its threads, wherever they are, their tasks and standbys, the records that
    wait for them, their versions, and how far restores are.

    It asks the log and, about restores, the instances that run with
    --http. Exit code 1 says that nobody runs it, or that nobody has one of
    its tasks.

    [bold]pystreams status apps.wordcount --watch[/]
    """
    flags = flags_of_place(application_id, None, embedded_log, bootstrap_servers)
    looks = _looks(application, setting, flags, urls, tls_of(ca, cert, key_file), watch=watch)
    last = _show(looks, _STATUS, as_json=as_json, watch=watch)
    if last is not None and not last.status.runs:
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
    flags = flags_of_place(application_id, None, embedded_log, bootstrap_servers)
    looks = _looks(application, setting, flags, None, None, watch=watch, with_instances=False)
    _show(looks, _LAG, as_json=as_json, watch=watch)


def threads(
    application: ApplicationArgument,
    watch: WatchOption = False,
    as_json: JsonOption = False,
    urls: UrlsOption = None,
    ca: CaOption = None,
    cert: CertificateOption = None,
    key_file: KeyOption = None,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show what each thread of an application is at, and when it has last polled and committed.

    Instances that run with --http say it themselves. Of others only the
    tasks are known, from the log.

    [bold]pystreams threads apps.wordcount --watch[/]
    """
    flags = flags_of_place(application_id, None, embedded_log, bootstrap_servers)
    looks = _looks(application, setting, flags, urls, tls_of(ca, cert, key_file), watch=watch)
    _show(looks, _THREADS, as_json=as_json, watch=watch)


def _looks(
    application: str,
    setting: list[str] | None,
    flags: dict[str, Any],
    urls: list[str] | None,
    tls: ssl.SSLContext | None,
    *,
    watch: bool,
    with_instances: bool = True,
) -> Iterator[StatusLook]:
    """The application once, or every two seconds."""
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.dsl.builder import build_topology

    app = load_application(application)
    config = settings_of(app, setting, **flags)
    built = build_topology(app, config)
    with open_broker_of(config) as broker, open_admin(broker) as admin:
        looks = Looks(broker, admin, built, config, urls, tls)
        while True:
            yield looks.look(with_instances=with_instances, again=watch)
            if not watch:
                return
            time.sleep(_PAUSE_S)


def _show(looks: Iterator[StatusLook], view: _View, *, as_json: bool, watch: bool) -> StatusLook | None:
    """Show each look, and return the last one. Ctrl-C ends it."""
    last: StatusLook | None = None
    clock, began_ms = SystemClock(), 0.0
    with suppress(KeyboardInterrupt):
        for look in looks:
            now_ms = clock.monotonic_ms()
            committed = look.status.committed
            rate = None if last is None else 1000 * (committed - last.status.committed) / (now_ms - began_ms)
            last, began_ms = look, now_ms
            if as_json:
                print(as_line(view.as_json(look)), flush=True)
                continue
            if watch and output().is_terminal:
                output().clear()
            note(headline(look, rate))
            for line in (*warnings(look.status), *view.notes(look)):
                note(line)
            if look.status.members or view is _LAG:
                show_table(view.columns, view.rows(look))
    return last
