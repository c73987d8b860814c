"""Permission to read: everybody who reaches the address may read metrics and health; the rest needs the token."""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from pystreams.serving.refusals import refusal

#: A browser asks its user for a password when it is refused, and then sends it with the page's requests, too.
#: Programs send the token as a bearer's; Chromium looks at one scheme alone.
_CHALLENGE: Final = 'Basic realm="pystreams: any user, the token as password", charset="UTF-8"'


@dataclass(frozen=True, slots=True)
class Access:
    """``token``: the one that a request must bring, as ``Authorization: Bearer TOKEN``, or from a browser as the
    password of any user; None: there is none. ``closed``: without a token nobody gets more than metrics and health,
    because others reach the address."""

    token: str | None = None
    closed: bool = False

    def refusal(self, authorization: str) -> Response | None:
        """The answer to a request that brings this (empty: nothing) and may not pass; None: it may."""
        token = self.token
        if token is None:
            if not self.closed:
                return None
            return refusal(
                403,
                "closed",
                "only metrics and health are served at this address",
                why="others than programs of this machine reach it, and there is no token",
                hint="start the application with --http-token-file FILE, or with --http-open if everybody may read",
            )
        # In constant time: an answer that comes sooner would say how much of a token is right.
        if hmac.compare_digest(_given(authorization), token.encode()):
            return None
        return refusal(
            401,
            "unauthorized",
            "this application is read with a token",
            why="the request brings another one" if authorization else "the request brings none",
            hint="send it as Authorization: Bearer TOKEN; pystreams get and scan take --token-file FILE",
            **{"WWW-Authenticate": _CHALLENGE},
        )


def _given(authorization: str) -> bytes:
    """The token that a request brings; empty if there is none."""
    scheme, _, given = authorization.partition(" ")
    match scheme.lower():
        case "bearer":
            return given.strip().encode()
        case "basic":
            try:
                _, _, password = base64.b64decode(given, validate=True).partition(b":")
            except ValueError:
                return b""
            return password
    return b""
