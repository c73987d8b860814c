"""Permission to read: every client of the address may read metrics and health; all other pages require the token."""

from __future__ import annotations

import base64
import hmac
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from pystreams.serving.refusals import refusal

#: A browser that gets this challenge asks its user for a password, and then sends it with the page's requests, too.
#: Programs send a bearer token; that scheme is not offered here, because Chromium considers only one scheme.
_CHALLENGE: Final = 'Basic realm="pystreams: any user, the token as password", charset="UTF-8"'


@dataclass(frozen=True, slots=True)
class Access:
    """``token``: the token that a request must have, as ``Authorization: Bearer TOKEN``, or from a browser as the
    password of any user; None: there is none. ``closed``: if there is no token, only metrics and health are served,
    because other machines can reach the address."""

    token: str | None = None
    closed: bool = False

    def refusal(self, authorization: str) -> Response | None:
        """The answer to a request with this header Authorization (empty: it has none) that may not pass; None: it may
        pass."""
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
        # Compare in constant time: otherwise the time of the answer would show how much of a token is right.
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
    """The token in a request; empty if there is none."""
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
