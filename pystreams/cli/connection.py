"""The log that a command works on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pystreams.broker.port import Admin, Broker, TopicDescription
from pystreams.errors import BrokerUnavailableError, TopicError
from pystreams.ids import TopicPartition
from pystreams.nearest import did_you_mean, listing

if TYPE_CHECKING:
    from pystreams.config import StreamsConfig


@contextmanager
def open_broker(
    embedded_log: Path | None, bootstrap_servers: str | None, *, create: bool = False
) -> Iterator[Broker]:
    """Kafka at ``bootstrap_servers``, with the login that the environment has; without them the embedded log at
    ``embedded_log``, or at the place where applications keep theirs. Raises ``BrokerUnavailableError`` if it is not
    there."""
    broker = (
        _kafka(_from_environment(bootstrap_servers))
        if bootstrap_servers
        else _embedded(embedded_log, create=create)
    )
    with closing(broker):
        yield broker


@contextmanager
def open_broker_of(config: StreamsConfig) -> Iterator[Broker]:
    """The log of an application, which has to be there, with the application's own login."""
    broker = _kafka(config) if config.bootstrap_servers else _embedded(config.embedded_log, create=False)
    with closing(broker):
        yield broker


def _from_environment(bootstrap_servers: str) -> StreamsConfig:
    from pystreams.config import StreamsConfig, merge_settings, settings_from_environment

    found = merge_settings(settings_from_environment(os.environ))
    return StreamsConfig(
        application_id="pystreams",
        bootstrap_servers=bootstrap_servers,
        client_settings=found.get("client_settings", {}),
    )


def _kafka(config: StreamsConfig) -> Broker:
    from pystreams.clock import SystemClock
    from pystreams.runtime.client_start import open_broker

    return open_broker(config, SystemClock())


def _embedded(embedded_log: Path | None, *, create: bool) -> Broker:
    """Without ``create`` none is made: a command that looks into a log from the wrong folder shall say so, and leave no
    empty log behind."""
    from pystreams.broker.embedded import EmbeddedBroker
    from pystreams.config import DEFAULT_EMBEDDED_LOG

    path = embedded_log or DEFAULT_EMBEDDED_LOG
    if not create and not path.exists():
        raise BrokerUnavailableError(
            f"There is no embedded log at {path}",
            where=f"looked for it from {Path.cwd()}",
            hint="go to the folder where the application runs, or name the file: --embedded-log FILE;"
            " `pystreams topics create NAME` makes a new log",
        )
    return EmbeddedBroker(path)


@contextmanager
def open_admin(broker: Broker) -> Iterator[Admin]:
    """An ``Admin`` that is closed again."""
    admin = broker.admin()
    try:
        yield admin
    finally:
        admin.close()


def existing_topic(admin: Admin, broker: Broker, name: str) -> TopicDescription:
    """The topic of that name. Raises ``TopicError`` that names the nearest and how to create it."""
    topics = admin.describe_topics()
    if name not in topics:
        raise TopicError(
            f"There is no topic {name}",
            where=broker.description,
            why=f"its topics: {listing(topics)}",
            hint=did_you_mean(name, topics) or f"create it: pystreams topics create {name}",
        )
    return topics[name]


def partitions_of(topic: TopicDescription) -> list[TopicPartition]:
    """All partitions, in order."""
    return [TopicPartition(topic.name, partition) for partition in range(topic.partitions)]
