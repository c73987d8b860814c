"""Tokens for the login with OAUTHBEARER, shared by both clients.

Sources: RFC 6749, RFC 7628.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka.net.sasl.oauth import AbstractTokenProvider

from pystreams.clock import Clock, SystemClock
from pystreams.errors import BrokerError, StreamsError, summarize

log = logging.getLogger(__name__)

#: Returns a token and its expiry time, in seconds since 1970.
TokenProvider = Callable[[], tuple[str, float]]

#: A token is renewed after this share of its lifetime, as librdkafka and Java do.
_LIFE: Final = 0.8


class Tokens:
    """The token of one kind of client, cached for most of its lifetime. Threads may share it. ``extensions`` are sent
    with it."""

    def __init__(
        self, provider: TokenProvider, extensions: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> None:
        self.extensions = dict(extensions or {})
        self._provider = provider
        self._clock = clock or SystemClock()
        self._mutex = threading.Lock()
        self._token = ""
        self._expires_s = self._renew_s = 0.0

    def get(self) -> tuple[str, float]:
        """A token and its expiry time. Raises ``BrokerError`` if none can be fetched."""
        with self._mutex:
            now_s = self._clock.now_ms() / 1000
            if now_s >= self._renew_s:
                try:
                    self._renew(now_s)
                except StreamsError as error:
                    if now_s >= self._expires_s:
                        raise
                    log.warning(
                        "the old token for Kafka is still used, because renewing it failed: %s", error
                    )
            return self._token, self._expires_s

    def _renew(self, now_s: float) -> None:
        try:
            token, expires_s = _checked(self._provider())
        except StreamsError:
            raise
        except Exception as error:
            raise BrokerError(
                "oauth_token_provider returned no token for Kafka", why=summarize(error)
            ) from error
        if expires_s <= now_s:
            raise BrokerError("The token for Kafka has expired already", hint="is the clock right?")
        self._token, self._expires_s = token, expires_s
        self._renew_s = now_s + _LIFE * (expires_s - now_s)

    def for_librdkafka(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        """The callback ``oauth_cb`` of confluent-kafka: token, expiry, principal (unused), extensions."""
        return *self.get(), "", self.extensions


class MemberTokens(AbstractTokenProvider):  # type: ignore[misc]
    """The tokens for kafka-python."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def token(self) -> Any:
        return self._tokens.get()[0]

    def extensions(self) -> dict[str, str]:
        return self._tokens.extensions


def _checked(given: Any) -> tuple[str, float]:
    match given:
        case (str(token), int() | float() as expires_s) if token:
            return token, float(expires_s)
    raise BrokerError(
        "oauth_token_provider returned no token for Kafka",
        why=f"it returned {type(given).__name__}",
        hint="it must return two values: the token, and its expiry time in seconds since 1970",
    )
