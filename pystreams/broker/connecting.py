"""Opens the log that a configuration names."""

from __future__ import annotations

from pystreams.broker.missing_log import check_embedded_log
from pystreams.broker.port import Broker
from pystreams.clock import Clock
from pystreams.config import StreamsConfig


def open_broker(config: StreamsConfig, clock: Clock, *, if_missing: str | None = None) -> Broker:
    """The Kafka cluster at ``bootstrap_servers``; without this setting, the embedded log.

    With ``if_missing`` (the advice in the error), a missing embedded log is an error: a reader in the wrong folder gets
    the error, and no empty log is created. None: the log is created. Raises ``ConfigError``, ``BrokerError``.
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
            exactly_once=config.exactly_once,
            client_settings=config.client_settings,
            oauth_token_provider=config.oauth_token_provider,
            client_id=config.client_id or config.application_id,
            statistics_interval_ms=config.client_statistics_interval_ms,
        )
    if if_missing is not None:
        check_embedded_log(config.embedded_log, if_missing)
    from pystreams.broker.embedded import EmbeddedBroker

    return EmbeddedBroker(
        config.embedded_log,
        clock,
        session_timeout_ms=config.session_timeout_ms,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        max_poll_interval_ms=config.max_poll_interval_ms,
    )
