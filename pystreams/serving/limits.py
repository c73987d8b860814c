"""The limits of requests: they have no body, because all of them only read, their paths are not endless, and not too
many are at work at once."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pystreams.serving.health_pages import is_for_health
from pystreams.serving.refusals import RETRY_AFTER, refusal

#: So many requests are at work at once; more get 503. Those of probes do not count: when all others wait, they say why.
REQUESTS_MAX: Final = 256

#: The largest path, with its parameters.
TARGET_BYTES_MAX: Final = 16_384

_EMPTY: Final = ("", "0")


class Limits:
    """Refuses a request that is larger than it may be, before anything of its body is read: the connection ends with
    the answer. Refuses one request too many."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._at_work = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = _refusal(scope) if scope["type"] == "http" else None
        if refused is not None or scope["type"] != "http" or is_for_health(scope):
            await (refused or self._app)(scope, receive, send)
        elif self._at_work >= REQUESTS_MAX:
            await _too_many()(scope, receive, send)
        else:
            self._at_work += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._at_work -= 1


def _too_many() -> ASGIApp:
    why = f"{REQUESTS_MAX} requests are at work"
    hint = "ask again in a moment"
    return refusal(503, "busy", "the server has too much to do", why=why, hint=hint, **RETRY_AFTER)


def _refusal(scope: Scope) -> ASGIApp | None:
    headers = Headers(scope=scope)
    if headers.get("content-length", "") not in _EMPTY or "transfer-encoding" in headers:
        hint = "send a GET request, with its parameters in the URL"
        return refusal(413, "body", "a request has no body here", hint=hint, Connection="close")
    # The server counts only what it has to wait for: a head that arrives at once may be larger than its limit.
    if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > TARGET_BYTES_MAX:
        why = f"it has more than {TARGET_BYTES_MAX:,} bytes"
        return refusal(414, "too-long", "the path is too long", why=why, Connection="close")
    return None
