"""``pystreams get`` and ``pystreams scan``."""

from __future__ import annotations

import json
import ssl
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from pystreams.cli.application_client import AnswerError, ApplicationClient, first_reachable
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
from pystreams.cli.terminal.console import note, output, print_json, show_table, text_or_json
from pystreams.errors import ConfigError, StreamsError
from pystreams.serving.token import read_token
from pystreams.times import show_time

StoreArgument: TypeAlias = Annotated[str, typer.Argument(metavar="STORE", help="The name of the store.")]

UrlOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="PYSTREAMS_URL",
        help="Where the application is: https://HOST:PORT, HOST:PORT, or a port of this machine. Default: where the "
        "group of the application has an instance with --http",
        show_default=False,
    ),
]

TokenFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        envvar="PYSTREAMS_HTTP_TOKEN_FILE",
        help="The token that the application asks for is in this file; needs --url.",
        show_default=False,
    ),
]

JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print whole entries, as JSON.")]

FromTimeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--from-time",
        metavar="TIME",
        help="Only windows that start then or later, and sessions that end then or later: 2013-01-01, "
        "2013-01-01T10:00:00Z or milliseconds.",
        show_default=False,
    ),
]

ToTimeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--to-time",
        metavar="TIME",
        help="Only windows and sessions that start then or earlier.",
        show_default=False,
    ),
]

LIMIT = 100

#: The fields of an entry that are times. Windows, sessions and versions have them beside their key and value.
_TIMES: Final = frozenset({"start", "end", "timestamp", "valid_to"})


def get(
    application: ApplicationArgument,
    store: StoreArgument,
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="The key: text, a number, or JSON for keys with fields.")
    ],
    from_time: FromTimeOption = None,
    to_time: ToTimeOption = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="Of a versioned store: the version that was valid then.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    cert: CertificateOption = None,
    key_file: KeyOption = None,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show what a running application has under a key.

    It must run with --http. Exit code 1 says that there is nothing, or that
    it cannot be read now.

    [bold]pystreams get apps.wordcount word-counts be[/]
    """
    place = flags_of_place(application_id, None, embedded_log, bootstrap_servers)
    client = _client(url, token_file, application, setting, place, tls_of(ca, cert, key_file))
    given = {"from_time": from_time, "to_time": to_time, "as_of": as_of}
    found = client.key(store, key, {name: text for name, text in given.items() if text is not None})
    if as_json:
        print_json(found)
    elif "entries" in found:
        _show(found["entries"])
    else:
        print(text_or_json(found["value"]))


def scan(
    application: ApplicationArgument,
    store: StoreArgument,
    from_key: Annotated[
        str | None, typer.Option("--from", metavar="KEY", help="The first key.", show_default=False)
    ] = None,
    to_key: Annotated[
        str | None, typer.Option("--to", metavar="KEY", help="The last key.", show_default=False)
    ] = None,
    from_time: FromTimeOption = None,
    to_time: ToTimeOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="So many entries at most.")] = LIMIT,
    as_json: JsonOption = False,
    url: UrlOption = None,
    token_file: TokenFileOption = None,
    ca: CaOption = None,
    cert: CertificateOption = None,
    key_file: KeyOption = None,
    application_id: ApplicationIdOption = None,
    setting: SetOption = None,
    embedded_log: EmbeddedLogOption = None,
    bootstrap_servers: BootstrapServersOption = None,
) -> None:
    """Show the entries of a store of a running application, in the order of their keys' bytes.

    It must run with --http. With --json each line is an entry.

    [bold]pystreams scan apps.wordcount word-counts --from a --to c[/]
    """
    place = flags_of_place(application_id, None, embedded_log, bootstrap_servers)
    client = _client(url, token_file, application, setting, place, tls_of(ca, cert, key_file))
    given = {"from": from_key, "to": to_key, "from_time": from_time, "to_time": to_time}
    parameters = {name: text for name, text in given.items() if text is not None}
    # One more shows whether there are more.
    found = list(client.entries(store, parameters, limit + 1))
    if as_json:
        for entry in found[:limit]:
            print(json.dumps(entry, ensure_ascii=False))
    else:
        _show(found[:limit])
    if len(found) > limit:
        note(f"There are more than {limit:,} entries: --limit shows more of them.")


def _client(
    url: str | None,
    token_file: Path | None,
    application: str,
    setting: list[str] | None,
    place: dict[str, Any],
    tls: ssl.SSLContext | None,
) -> ApplicationClient:
    """Raises ``ConfigError`` for a token without a URL."""
    if url is not None:
        token = None if token_file is None else read_token(token_file)
        return ApplicationClient(url, token, tls, partial(_id_here, application, setting, place))
    if token_file is not None:
        raise ConfigError(
            "the token is not sent to an instance that is found through the group",
            where=str(token_file),
            why="the group does not know whether the instance speaks HTTPS, and a member of it may name any address",
            hint="give the address: --url https://HOST:PORT, or --url PORT for an instance on this machine",
        )
    endpoint, application_id = _found(application, setting, place)
    return ApplicationClient(endpoint, None, tls, lambda _: application_id)


def _id_here(application: str, setting: list[str] | None, place: dict[str, Any], there: str) -> str:
    """The id of the application that the command line names. If its program cannot be loaded here, this is said, and
    it is the id of the application ``there``."""
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of

    if place["application_id"] is not None:
        return str(place["application_id"])
    try:
        return settings_of(load_application(application), setting, **place).application_id
    except StreamsError as error:
        note(
            f"The answer is from the application {there}. Whether that is {application} is not known here: {error.what}"
        )
        return there


def _found(application: str, setting: list[str] | None, place: dict[str, Any]) -> tuple[str, str]:
    """The endpoint of an instance that answers, as the group of the application knows it, and the application's id.
    Raises ``AnswerError`` if there is none."""
    from pystreams.cli.application.loading import load_application
    from pystreams.cli.application.settings import settings_of
    from pystreams.runtime.group.application_status import endpoints_of

    config = settings_of(load_application(application), setting, **place)
    with open_broker_of(config) as broker, open_admin(broker) as admin:
        endpoints = endpoints_of(admin, config.application_id)
        runs = bool(endpoints or admin.group_members(config.application_id))
        place_of_log = broker.description
    if not runs:
        raise AnswerError(
            f"{config.application_id} does not run on {place_of_log}",
            why="its group has no members",
            hint=f"start it: pystreams run {application} --http HOST:PORT",
        )
    found = first_reachable(endpoints)
    if found is not None:
        return found, config.application_id
    if endpoints:
        raise AnswerError(
            f"no instance of {config.application_id} answers queries",
            why=f"nothing listens at {', '.join(endpoints)}",
            hint="run it with --http HOST:PORT; or give the address of one that runs: --url URL",
        )
    raise AnswerError(
        f"no instance of {config.application_id} is known that answers queries",
        why="none of them has given its group an address: they run without --http, or listen on all addresses "
        "(0.0.0.0) of a machine whose name stands for a loopback address",
        hint="run it with --http HOST:PORT; if it listens on 0.0.0.0, give its port on its own machine: --url PORT, or "
        "start it with an address that others reach: -s application_server=HOST:PORT",
    )


def _show(entries: list[dict[str, Any]]) -> None:
    """A column for each field. Times are for people on a terminal, and milliseconds elsewhere."""
    names = list(dict.fromkeys(name for entry in entries for name in entry))
    times = _TIMES if output().is_terminal else frozenset()

    def cell(name: str, content: Any) -> str:
        return show_time(content) if name in times and isinstance(content, int) else text_or_json(content)

    show_table(names, [[cell(name, entry.get(name)) for name in names] for entry in entries])
