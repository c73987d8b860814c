"""Requests have no bodies: all of them only read."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pystreams.serving.refusals import refusal

_EMPTY: Final = ("", "0")


class NoBodies:
    """Refuses a request with a body, before anything of it is read: the connection ends with the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if headers.get("content-length", "") not in _EMPTY or "transfer-encoding" in headers:
                app = refusal(
                    413,
                    "body",
                    "a request has no body here",
                    hint="send a GET request, with its parameters in the URL",
                    Connection="close",
                )
        await app(scope, receive, send)
