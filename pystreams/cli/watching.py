"""What ``run`` does for those that watch over the application: an HTTP server, notifications for systemd."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from pystreams.cli.terminal.logs import command_log
from pystreams.clock import SystemClock
from pystreams.distribution import install_command
from pystreams.errors import ConfigError
from pystreams.serving.address import Address
from pystreams.serving.systemd import SystemdNotifier
from pystreams.serving.watched import Watched


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """``http`` is the address of the server (None: there is none). The application is ready while ``ready_lag`` records
    wait at most (None: any number)."""

    http: Address | None = None
    ready_lag: int | None = None

    @classmethod
    def parse(cls, http: str | None, ready_lag: int | None) -> WatchOptions:
        """The options as the command line has them. Raises ``ConfigError`` for what is no address."""
        return cls(None if http is None else Address.parse(http), ready_lag)


@contextmanager
def shown(watched: Watched, options: WatchOptions) -> Iterator[None]:
    """Shows an application inside. Raises ``ConfigError`` for an address that cannot be listened on, and without the
    extra ``http`` if there is an address."""
    with _served(watched, options.http), SystemdNotifier(watched, os.environ, SystemClock()):
        yield


def _served(watched: Watched, address: Address | None) -> AbstractContextManager[object]:
    if address is None:
        return nullcontext()
    try:
        from pystreams.serving.server import HttpServer
    except ImportError as error:
        raise ConfigError(
            "--http needs packages that are not installed", why=str(error), hint=install_command("http")
        ) from None
    server = HttpServer(address, watched)
    reach = "" if server.is_loopback else "; whoever reaches this port may read them"
    command_log.info("Metrics and health are at http://%s: /metrics, /live, /ready%s.", server.address, reach)
    return server
