"""Asks a running application over HTTP."""

from __future__ import annotations

import http.client
import os
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from pystreams.errors import ConfigError, StreamsError
from pystreams.serving.headers import APPLICATION_HEADER
from pystreams.serving.threads import ClientThreads

#: An answer comes within this time: longer than any query has.
_TIMEOUT_S: Final = 30.0

#: The timeout of requests that an application always answers at once.
_SOON_S: Final = 5.0

#: An instance that does not take a connection in this time is not there.
_CONNECT_S: Final = 3.0

#: Codes of answers that are about what the user wrote.
_MISTAKES: Final = frozenset({"bad-query", "unknown-store", "unauthorized"})


class AnswerError(StreamsError):
    """The application has no answer now, or cannot be reached."""


class NothingThereError(StreamsError):
    """The store has nothing under the key."""


class _Refusal(msgspec.Struct):
    """The JSON form of an answer that is an error."""

    error: str
    code: str = ""
    why: str = ""
    hint: str = ""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: applications send none. A server that sends one might want to steal the token, which would
    go with the request."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class ApplicationClient:
    """The application at ``url``, which is asked with a ``token`` if there is one. ``tls``: how it is asked over HTTPS,
    which is then the default; None: HTTP is, and the system says whom to trust. ``wanted`` gets the id that the
    application there has, and returns the id that it should have: only that application's answers count. None: those of
    any application do."""

    def __init__(
        self,
        url: str,
        token: str | None,
        tls: ssl.SSLContext | None = None,
        wanted: Callable[[str], str] | None = None,
    ) -> None:
        """Raises ``ConfigError`` for a text that is no URL of a server."""
        # The port alone is that of this machine, as for ``run --http``.
        text = f"127.0.0.1:{url}" if url.isdecimal() else url
        self._url = (text if "://" in text else f"{'http' if tls is None else 'https'}://{text}").rstrip("/")
        if not _is_of_a_server(self._url):
            raise ConfigError(f"{url!r} is not the URL of an application", hint="write http://HOST:PORT")
        self._wanted = wanted
        self._headers = {"Accept": "application/json"}
        # Without proxies, since an application is in the same network, and a proxy would read the token.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls), _NoRedirects
        )
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def key(self, store: str, key: str, parameters: Mapping[str, str]) -> Any:
        """The entry of a key, or a page of its windows, sessions or versions. Raises ``NothingThereError``."""
        return self._get(f"/stores/{_segment(store)}/keys/{_segment(key)}", parameters)

    def entries(self, store: str, parameters: Mapping[str, str], limit: int) -> Iterator[dict[str, Any]]:
        """Entries in the order of their keys, ``limit`` at most, asked for page by page."""
        cursor: str | None = ""
        while cursor is not None and limit > 0:
            asked = {**parameters, "limit": str(min(limit, 1_000)), **({"cursor": cursor} if cursor else {})}
            page = self._get(f"/stores/{_segment(store)}/entries", asked)
            yield from page["entries"]
            limit -= len(page["entries"])
            cursor = page["cursor"]

    def threads(self) -> list[ClientThreads]:
        """The activities of the threads of all clients there. Raises ``StreamsError`` if they are not known."""
        found = self._get("/threads", {}, _SOON_S)
        try:
            return msgspec.convert(found, list[ClientThreads])
        except msgspec.ValidationError as error:
            raise AnswerError(
                f"{self._url} answers in another form", why=str(error), hint="it may run another version"
            ) from None

    def _get(self, path: str, parameters: Mapping[str, str], timeout_s: float = _TIMEOUT_S) -> Any:
        query = f"?{urlencode(parameters)}" if parameters else ""
        request = urllib.request.Request(f"{self._url}{path}{query}", headers=self._headers)  # noqa: S310 - checked
        try:
            status, name, content = self._answer(request, timeout_s)
            found = msgspec.json.decode(content) if status == http.HTTPStatus.OK else None
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = error.reason if isinstance(error, urllib.error.URLError) else error
            # A server may end the connection without a word if it misses a certificate.
            refusals = (ssl.SSLError, ConnectionResetError, BrokenPipeError)
            if self._url.startswith("https:") and isinstance(why, refusals):
                raise self._distrust(why) from None
            raise AnswerError(
                f"no application answers at {self._url}",
                why=os.strerror(why.errno) if isinstance(why, OSError) and why.errno else str(why),
                hint="start it with pystreams run APPLICATION --http HOST:PORT, and give that address: --url HOST:PORT",
            ) from None
        self._check_name(name)
        if status == http.HTTPStatus.OK:
            return found
        raise self._error(status, content)

    def _answer(self, request: urllib.request.Request, timeout_s: float) -> tuple[int, str | None, bytes]:
        """Status, name of the application, and content of an answer, which may end in the middle: raises ``OSError``
        and ``HTTPException``."""
        try:
            with self._opener.open(request, timeout=timeout_s) as answer:
                return answer.status, answer.headers[APPLICATION_HEADER], answer.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.headers[APPLICATION_HEADER], refusal.read()

    def _check_name(self, name: str | None) -> None:
        """Raises ``ConfigError`` if the answer is from another application. Older versions do not name theirs."""
        if name is None or self._wanted is None:
            return
        wanted = self._wanted(name)
        if name != wanted:
            raise ConfigError(
                f"{self._url} is the application {name}, not {wanted}",
                hint=f"give the address of {wanted}: --url URL (or PYSTREAMS_URL), or leave it out: then its group is "
                "asked where it is; or name the application that you mean",
            )
        self._wanted = None  # it is the same one for each page of a scan

    def _distrust(self, why: OSError) -> AnswerError:
        return AnswerError(
            f"{self._url} cannot be asked over HTTPS",
            why=why.strerror or str(why),
            hint="give the authority that has signed its certificate: --ca FILE; and if it demands a certificate of "
            "its clients, yours: --cert FILE --key FILE",
        )

    def _error(self, status: int, content: bytes) -> StreamsError:
        try:
            refusal = msgspec.json.decode(content, type=_Refusal)
        except msgspec.DecodeError:
            return AnswerError(
                f"{self._url} is not a pystreams application, or does not serve stores",
                why=f"it answers with status {status}: {content[:100].decode(errors='replace')}",
            )
        if refusal.code == "absent":
            return NothingThereError(refusal.error, why=refusal.why)
        kind = ConfigError if refusal.code in _MISTAKES else AnswerError
        what, hint = map(_with_options, (refusal.error, refusal.hint))
        return kind(what, where=self._url, why=refusal.why, hint=hint)


def first_reachable(endpoints: Sequence[str]) -> str | None:
    """The first of these addresses at which a server listens."""
    for endpoint in endpoints:
        host, _, port = endpoint.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S):
                return endpoint
        except (OSError, ValueError, OverflowError):  # the last two: it cannot be an endpoint
            continue
    return None


def _with_options(text: str) -> str:
    """A message of the application, with the options of commands instead of the parameters of requests. What is in
    quotes is the user's."""
    text = text.replace("swap from and to", "swap --from and --to")
    return re.sub(r"(?<![\w'\"])(from_time|to_time|as_of)(?![\w'\"])", _option, text)


def _option(parameter: re.Match[str]) -> str:
    return "--" + parameter[0].replace("_", "-")


def _is_of_a_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        # A port that cannot be one is a ValueError.
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _segment(text: str) -> str:
    """A name or key as one segment of a path."""
    return quote(text, safe="")
