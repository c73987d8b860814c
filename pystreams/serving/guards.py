"""The first check of every request. Most requests are refused or answered at once, without a task, a route or a
thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pystreams.serving.access import Access
from pystreams.serving.head import Head, path_of
from pystreams.serving.health_pages import is_for_health
from pystreams.serving.limits import one_too_many, size_refusal

#: Answers a request whose answer need not wait for anything; None: it is not such a request.
AtOnce = Callable[[Scope, Head], Response | None]

#: A name, an IPv4 address, or an IPv6 address in brackets; perhaps a port.
_HOST: Final = re.compile(r"([\w.-]+|\[[\da-fA-F:.]+\])(?::\d*)?", re.ASCII)

#: The number of values of the header Host for which the decision is cached.
_HOSTS_REMEMBERED_MAX: Final = 64


class Guards:
    """The application of the server, for ASGI. Refuses requests for other hosts, requests without permission, requests
    that are too large, and requests beyond the limit of their number. ``at_once`` answers the requests that it can,
    ``app`` all others."""

    def __init__(
        self, app: ASGIApp, hosts: Sequence[str], access: Access, at_once: AtOnce | None = None
    ) -> None:
        """``hosts`` as for ``pages``."""
        self._app = app
        self._access = access
        self._at_once = at_once
        self._at_work = 0
        #: Whether a request with this header Host may pass; None: all may.
        self._is_ours = None if "*" in hosts else _among({host.lower() for host in hosts})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await (self.answer_at_once(scope) or self.admitted)(scope, receive, send)

    async def admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have a request answered for which ``answer_at_once`` has no answer."""
        if is_for_health(path_of(scope)):
            await self._app(scope, receive, send)
            return
        refused = one_too_many(self._at_work)
        if refused is not None:
            await refused(scope, receive, send)
            return
        self._at_work += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._at_work -= 1

    def answer_at_once(self, scope: Scope) -> Response | None:
        """The answer to a request, if the answer need not wait for anything."""
        head = Head(scope)
        refused = self._refusal(scope, head)
        if refused is not None or self._at_once is None:
            return refused
        return self._at_once(scope, head)

    def _refusal(self, scope: Scope, head: Head) -> Response | None:
        if self._is_ours is not None and not self._is_ours(head.host):
            return PlainTextResponse("Invalid host header", 400)
        refused = None if is_for_health(head.path) else self._access.refusal(head.authorization)
        return refused or size_refusal(scope, head)


def _among(hosts: set[str]) -> Callable[[str], bool]:
    """A function that returns whether a header Host names one of these hosts, with any port."""

    @lru_cache(_HOSTS_REMEMBERED_MAX)
    def is_among(header: str) -> bool:
        found = _HOST.fullmatch(header)
        return found is not None and found[1].lower() in hosts

    return is_among
