"""The log that a command works on: makes the configuration from the options of a command, which ``broker.connecting``
opens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pystreams.broker.port import Admin, Broker
from pystreams.clock import SystemClock

if TYPE_CHECKING:
    from pystreams.config import StreamsConfig


_IF_MISSING: Final = (
    "create the first topics, and the log with them: `pystreams topics create NAME…`, or `pystreams run MODULE"
    " --create-topics`; if there is a log somewhere else, go to its folder, or name the file: --embedded-log FILE"
)


@contextmanager
def open_broker_at(
    embedded_log: Path | None, bootstrap_servers: str | None, *, create: bool = False
) -> Iterator[Broker]:
    """Kafka at ``bootstrap_servers``, with the login from the environment; without them the embedded log at
    ``embedded_log``, or at its default place. Raises ``BrokerUnavailableError`` if it is not there."""
    from pystreams.log.connection import log_config

    given = {"bootstrap_servers": bootstrap_servers} if bootstrap_servers else {"embedded_log": embedded_log}
    with _opened(log_config(given), create=create) as broker:
        yield broker


@contextmanager
def open_broker_of(config: StreamsConfig) -> Iterator[Broker]:
    """The log of an application, which must exist, with the application's own login."""
    with _opened(config, create=False) as broker:
        yield broker


@contextmanager
def _opened(config: StreamsConfig, *, create: bool) -> Iterator[Broker]:
    from pystreams.broker.connecting import open_broker

    with closing(open_broker(config, SystemClock(), if_missing=None if create else _IF_MISSING)) as broker:
        yield broker


@contextmanager
def open_admin(broker: Broker) -> Iterator[Admin]:
    """An ``Admin``, which the ``with`` block closes."""
    admin = broker.admin()
    try:
        yield admin
    finally:
        admin.close()
