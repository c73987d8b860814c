"""Tokens for the login with OAUTHBEARER, shared by both clients.

Sources: org.apache.kafka.common.security.oauthbearer.internals.secured.HttpJwtRetriever, RFC 6749, RFC 7628.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from kafka.net.sasl.oauth import AbstractTokenProvider

from pystreams.clock import Clock, SystemClock
from pystreams.config.security import ClientCredentials, TokenFile, TokenSource, UnsecuredToken
from pystreams.errors import BrokerError, BrokerUnavailableError, StreamsError, summarize

log = logging.getLogger(__name__)

#: Returns a token and its expiry time, in seconds since 1970.
TokenProvider = Callable[[], tuple[str, float]]

_TIMEOUT_S: Final = 10.0
#: A token is renewed after this share of its lifetime, as librdkafka and Java do.
_LIFE: Final = 0.8


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects: Python would send the client's id and secret to the new address, too."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_open: Final = build_opener(_NoRedirects).open


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


def provider_of(source: TokenSource | None) -> TokenProvider:
    """The function that fetches tokens from the source in the settings."""
    match source:
        case ClientCredentials():
            return lambda: _fetch(source)
        case TokenFile(url):
            return lambda: _read(url)
        case UnsecuredToken():
            return lambda: _unsecured(source)
    raise AssertionError("the settings were checked")


def _checked(given: Any) -> tuple[str, float]:
    match given:
        case (str(token), int() | float() as expires_s) if token:
            return token, float(expires_s)
    raise BrokerError(
        "oauth_token_provider returned no token for Kafka",
        why=f"it returned {type(given).__name__}",
        hint="it must return two values: the token, and its expiry time in seconds since 1970",
    )


def _fetch(source: ClientCredentials) -> tuple[str, float]:
    names = [source.client_id, source.client_secret]
    if source.urlencode:
        names = [quote_plus(name) for name in names]
    credentials = base64.b64encode(":".join(names).encode()).decode()
    form = {"grant_type": "client_credentials", **({"scope": source.scope} if source.scope else {})}
    request = Request(  # noqa: S310 - the scheme was checked
        source.url,
        urlencode(form).encode(),
        {"Authorization": f"Basic {credentials}", "Accept": "application/json"},
    )
    try:
        with _open(request, timeout=_TIMEOUT_S) as response:
            answer = json.load(response)
    except HTTPError as error:
        error.close()
        raise BrokerError(
            "The token server refuses a token for Kafka",
            where=source.url,
            why=f"the server answered {error.code} {error.reason}",
            hint="check the client's id and secret, and the scope",
        ) from None
    except OSError as error:
        raise BrokerUnavailableError(
            "The token server for Kafka does not answer", where=source.url, why=str(error)
        ) from None
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or not isinstance(
        token := answer.get("access_token") or answer.get("id_token"), str
    ):
        raise BrokerError("The token server for Kafka answered without a token", where=source.url)
    return token, _expiry_s(token, answer.get("expires_in"))


def _read(url: str) -> tuple[str, float]:
    try:
        with _open(url, timeout=_TIMEOUT_S) as file:
            token = file.read().decode("ascii").strip()
    except (OSError, ValueError) as error:
        raise BrokerError("The token for Kafka cannot be read", where=url, why=str(error)) from None
    return token, _expiry_s(token, None)


def _expiry_s(token: str, expires_in_s: Any) -> float:
    """The expiry time in the token, else in the server's answer."""
    try:
        body = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        if isinstance(expires_in_s, int | float | str) and str(expires_in_s).replace(".", "", 1).isdigit():
            return SystemClock().now_ms() / 1000 + float(expires_in_s)
    raise BrokerError(
        "The token for Kafka does not have an expiry time",
        why="it is not a JWT with the claim exp, and the server's answer has no expires_in",
        hint="give the function oauth_token_provider, which returns the expiry time",
    )


def _unsecured(source: UnsecuredToken) -> tuple[str, float]:
    now_s = SystemClock().now_ms() / 1000
    claims = {"iat": now_s, "exp": now_s + source.lifetime_s, **source.claims}
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "none"}, claims))
    token = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    return f"{token}.", claims["exp"]
