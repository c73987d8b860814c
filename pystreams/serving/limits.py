"""The limits of a request: it has no body, because all of them only read, and its path is not endless."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pystreams.serving.refusals import refusal

#: The largest path, with its parameters.
TARGET_BYTES_MAX: Final = 16_384

_EMPTY: Final = ("", "0")


class Limits:
    """Refuses a request that is larger than it may be, before anything of its body is read: the connection ends with
    the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = _refusal(scope) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)


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
