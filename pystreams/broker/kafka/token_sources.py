"""The sources of tokens: a token server, a file, or this process itself.

It is imported only if a login needs it, because Python's HTTP client takes a tenth of the time of all other imports.

Sources: org.apache.kafka.common.security.oauthbearer.internals.secured.HttpJwtRetriever, RFC 6749.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote_plus, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from pystreams.broker.kafka.oauth import TokenProvider
from pystreams.clock import SystemClock
from pystreams.config.security import ClientCredentials, TokenFile, TokenSource, UnsecuredToken
from pystreams.errors import BrokerError, BrokerUnavailableError

_TIMEOUT_S: Final = 10.0


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects: Python would send the client's id and secret to the new address, too."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_open: Final = build_opener(_NoRedirects).open


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
    """The expiry time in the token; if it has none, in the server's answer."""
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
