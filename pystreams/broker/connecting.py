"""The log that a configuration names."""

from __future__ import annotations

from pathlib import Path

from pystreams.broker.port import Broker
from pystreams.clock import Clock
from pystreams.config import StreamsConfig
from pystreams.errors import BrokerUnavailableError


def open_broker(config: StreamsConfig, clock: Clock, *, if_missing: str | None = None) -> Broker:
    """Kafka at the configuration's ``bootstrap_servers``, without them its embedded log.

    ``if_missing`` says what to do where there is no embedded log: who looks into one from the wrong folder shall be
    told so, and leave no empty log behind. None: one is made. Raises ``ConfigError``, ``BrokerError``.
    """
    if config.bootstrap_servers is not None:
        from pystreams.broker.kafka import KafkaBroker

        return KafkaBroker(
            config.bootstrap_servers,
            clock,
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            max_poll_interval_ms=config.max_poll_interval_ms,
            replication_factor=config.replication_factor,
            client_settings=config.client_settings,
            oauth_token_provider=config.oauth_token_provider,
            client_id=config.client_id or config.application_id,
        )
    if if_missing is not None and not config.embedded_log.exists():
        raise BrokerUnavailableError(
            f"There is no embedded log at {config.embedded_log}",
            where=f"looked for it from {Path.cwd()}",
            hint=if_missing,
        )
    from pystreams.broker.embedded import EmbeddedBroker

    return EmbeddedBroker(
        config.embedded_log,
        clock,
        # A dead process is known by its lock, and a living one is heard of by its polls alone: it is gone when it is
        # silent for longer than a thread may work without polling.
        session_timeout_ms=max(config.session_timeout_ms, config.max_poll_interval_ms),
        heartbeat_interval_ms=config.heartbeat_interval_ms,
    )
