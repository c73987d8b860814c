"""The parts of ``run`` that let others watch over the application: an HTTP server, notifications for systemd."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pystreams.cli.terminal.logs import command_log
from pystreams.clock import SystemClock
from pystreams.distribution import install_command
from pystreams.errors import ConfigError
from pystreams.serving.address import Address, Endpoint
from pystreams.serving.systemd import SystemdNotifier
from pystreams.serving.tls import Tls
from pystreams.serving.token import read_token
from pystreams.serving.watched import Watched

if TYPE_CHECKING:
    from pystreams.runtime.streams import Streams
    from pystreams.serving.server import HttpServer
    from pystreams.serving.stores.asking import Answerer


#: By the fields of ``HttpOptions``.
_OPTIONS: Final = {
    "token_file": "--http-token-file",
    "open_to_all": "--http-open",
    "certificate": "--http-cert",
    "key": "--http-key",
    "ca": "--http-ca",
    "client_ca": "--http-client-ca",
}


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The options of the HTTP server besides its address. ``open_to_all``: stores are served to everybody who reaches
    the address."""

    token_file: Path | None = None
    open_to_all: bool = False
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    client_ca: Path | None = None

    def without(self, parameters: Collection[str]) -> HttpOptions:
        """A copy in which the options of these ``parameters`` of the command have their defaults. Without ``--http``,
        ``run`` does so with options from environment variables: users export these for other commands, too."""
        defaults = HttpOptions()
        return replace(
            self,
            **{
                field: getattr(defaults, field)
                for field, option in _OPTIONS.items()
                if option.removeprefix("--").replace("-", "_") in parameters
            },
        )

    def check(self, address: str | None) -> None:
        """Raises ``ConfigError`` for options that do not fit together."""
        given = [option for field, option in _OPTIONS.items() if getattr(self, field)]
        if given and address is None:
            raise ConfigError(f"{given[0]} is for --http", hint="add --http HOST:PORT, or leave it out")
        if (self.certificate is None) != (self.key is None):
            raise ConfigError(
                "a certificate is used together with its key", hint="give both --http-cert and --http-key"
            )
        for name in ("--http-ca", "--http-client-ca"):
            if name in given and self.certificate is None:
                raise ConfigError(
                    f"{name} is for instances that speak HTTPS",
                    hint="give --http-cert and --http-key, too, or leave it out",
                )


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """``address`` is that of the HTTP server (None: there is none). The application is ready while ``ready_lag``
    records wait at most (None: any number)."""

    address: Address | None = None
    ready_lag: int | None = None
    http: HttpOptions = HttpOptions()

    @classmethod
    def parse(cls, http: str | None, ready_lag: int | None, options: HttpOptions) -> WatchOptions:
        """The options as the command line has them. Raises ``ConfigError`` for what is no address, and for options that
        do not fit together."""
        options.check(http)
        return cls(None if http is None else Address.parse(http), ready_lag, options)


@contextmanager
def shown(
    watched: Watched, answerer: Callable[[], Answerer], options: WatchOptions
) -> Iterator[Endpoint | None]:
    """Shows an application inside, and its stores, of which ``answerer`` gives the reader if there is an HTTP server.
    Gives the endpoint at which others can ask it; None: there is no HTTP server.

    Raises ``ConfigError`` for an address that cannot be listened on, and without the extra ``http`` if there is an
    address."""
    with (
        _served(watched, answerer, options) as endpoint,
        SystemdNotifier(watched, os.environ, SystemClock()),
    ):
        yield endpoint


def announce(streams: Streams, endpoint: Endpoint | None, *, warns: bool = True) -> None:
    """Have the group know that ``endpoint`` answers for this process, unless the application names its address itself
    (``application_server``). None: there is none. Before the start.

    On Kafka, members may be on other machines: an endpoint of this machine only is not announced, and the log says so
    if ``warns``. Members of a group on the embedded log are on one machine."""
    if endpoint is None or streams.config.application_server is not None:
        return
    if not endpoint.only_here or streams.config.bootstrap_servers is None:
        streams.set_application_server(endpoint.address)
    elif warns:
        command_log.warning(
            "Other instances, and pystreams get, scan and threads, cannot find the HTTP server of this instance: it "
            "listens on all addresses, but the name of this machine (%s) stands for a loopback address. Set "
            "application_server to an address that they reach, for example -s application_server=10.0.0.5%s.",
            socket.gethostname(),
            endpoint.address.removeprefix("localhost"),
        )


@contextmanager
def _served(
    watched: Watched, answerer: Callable[[], Answerer], options: WatchOptions
) -> Iterator[Endpoint | None]:
    if options.address is None:
        yield None
        return
    try:
        from pystreams.serving.server import HttpServer
        from pystreams.serving.stores.asking import Instance
        from pystreams.serving.stores.peers import Peers
    except ImportError as error:
        raise ConfigError(
            "--http needs packages that are not installed", why=str(error), hint=install_command("http")
        ) from None
    http = options.http
    token = None if http.token_file is None else read_token(http.token_file)
    tls = None
    if http.certificate is not None and http.key is not None:
        tls = Tls(http.certificate, http.key, http.ca, http.client_ca)
        tls.check()
    with closing(Peers(token, None if tls is None else tls.trusting())) as peers:
        stores = Instance(answerer(), peers.ask)
        server = HttpServer(
            options.address, watched, stores, peers, token=token, open_to_all=http.open_to_all, tls=tls
        )
        if not server.closed:
            command_log.info("The live page, for a browser, is at %s/.", server.url)
        command_log.info(
            "Metrics, health and stores are at %s: /metrics, /live, /ready, /stores%s.",
            server.url,
            _reach(server),
        )
        with server:
            yield server.endpoint


def _reach(server: HttpServer) -> str:
    if server.closed:
        return "; stores only with --http-token-file or --http-open, because others than this machine reach the address"
    if server.is_loopback or server.has_proof:
        return ""
    return "; whoever reaches this port may read them"
