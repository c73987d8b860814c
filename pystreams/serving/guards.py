"""The first check of every request. Most requests are refused or answered at once, without a task, a route or a
thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pystreams.serving.access import Access
from pystreams.serving.head import Head, path_of
from pystreams.serving.headers import APPLICATION_HEADER
from pystreams.serving.health_pages import is_for_health
from pystreams.serving.limits import one_too_many, size_refusal
from pystreams.serving.refusals import refusal

#: Answers a request whose answer need not wait for anything; None: it is not such a request.
AtOnce = Callable[[Scope, Head], Response | None]

#: A name, an IPv4 address, or an IPv6 address in brackets; perhaps a port.
_HOST: Final = re.compile(r"([\w.-]+|\[[\da-fA-F:.]+\])(?::\d*)?", re.ASCII)

#: As ASGI writes its name.
_APPLICATION: Final = APPLICATION_HEADER.lower().encode()

#: The number of values of the header Host for which the decision is cached.
_HOSTS_REMEMBERED_MAX: Final = 64


class Guards:
    """The application of the server, for ASGI. Refuses requests for other hosts, requests without permission, requests
    that are too large, and requests beyond the limit of their number. ``at_once`` answers the requests that it can,
    ``app`` all others. Each answer names the application."""

    def __init__(
        self,
        app: ASGIApp,
        application_id: Callable[[], str | None],
        hosts: Sequence[str],
        access: Access,
        at_once: AtOnce | None = None,
    ) -> None:
        """``application_id`` as in ``Watched``, ``hosts`` as for ``pages``."""
        self._app = app
        self._application_id = application_id
        self._name: tuple[bytes, bytes] | None = None
        #: The header that names the application, as a line of an answer. Empty: it is not known yet, see ``find_name``.
        self.name_line = b""
        self._access = access
        self._at_once = at_once
        self._at_work = 0
        #: Whether a request with this header Host may pass; None: all may.
        self._is_ours = None if "*" in hosts else _among({host.lower() for host in hosts})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self.answer_at_once(scope)
        if answer is None:
            await self.admitted(scope, receive, send)
        else:
            await answer(scope, receive, self._naming(send))

    def find_name(self) -> bytes:
        """``name_line``, if it can be known by now."""
        if not self.name_line and (found := self._application_id()) is not None:
            self._name = _APPLICATION, found.encode()
            self.name_line = b"%b: %b\r\n" % self._name
        return self.name_line

    def _naming(self, send: Send) -> Send:
        """``send``, with the application's id among the headers."""
        self.find_name()
        name = self._name
        if name is None:
            return send

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), name]}
            await send(message)

        return send_named

    async def admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have a request answered for which ``answer_at_once`` has no answer."""
        send = self._naming(send)
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
            return _wrong_host(head.host)
        refused = None if is_for_health(head.path) else self._access.refusal(head.authorization)
        return refused or size_refusal(scope, head)


def _wrong_host(host: str) -> Response:
    """The answer to a request for another host, on an address of this machine only."""
    return refusal(
        400,
        "wrong-host",
        f"this server does not answer for the host {host[:200]!r}",
        why="it listens on an address of its own machine only, and there a request for another host may come from a "
        "web site",
        hint="ask for localhost or 127.0.0.1; for requests from containers or other machines, listen on an address "
        "that they reach: --http 0.0.0.0:PORT, with --http-token-file FILE for the stores",
    )


def _among(hosts: set[str]) -> Callable[[str], bool]:
    """A function that returns whether a header Host names one of these hosts, with any port."""

    @lru_cache(_HOSTS_REMEMBERED_MAX)
    def is_among(header: str) -> bool:
        found = _HOST.fullmatch(header)
        return found is not None and found[1].lower() in hosts

    return is_among
