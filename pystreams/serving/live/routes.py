"""The routes of the live page: the page itself, its files, its state as JSON and as events, the topology as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from pystreams.clock import SystemClock
from pystreams.serving.live.events import EVENTS_PATH, STREAM_S, EventStreams, States
from pystreams.serving.live.first_paint import first_paint
from pystreams.serving.live.look import Shown
from pystreams.serving.live.other_instances import STATE_PATH, OtherInstances
from pystreams.serving.refusals import FRESH
from pystreams.serving.stores.peers import PART_HEADER, Peers

_STATIC: Final = Path(__file__).parent / "static"
_TOPOLOGY_PATH: Final = "/topology"

#: Headers that permit only content of this server, and no inline scripts, so that a name in the page cannot become one.
_GUARDED: Final = {
    **FRESH,
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}


class _Files(StaticFiles):
    """The files of the page. Browsers check them at each use, because a new version of the program may have changed
    them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


class LivePage:
    """The page of one application."""

    PATHS: Final = (STATE_PATH, EVENTS_PATH, _TOPOLOGY_PATH)

    def __init__(
        self, shown: Shown, *, with_stores: bool, peers: Peers | None = None, stream_s: float = STREAM_S
    ) -> None:
        """``with_stores``: keys can be looked up below ``/stores``. ``peers``: for requests to other instances; None:
        they are not asked. ``stream_s``: a stream of events ends after this time."""
        clock = SystemClock()
        self._shown = shown
        self._with_stores = with_stores
        self._states = States(shown, clock, None if peers is None else OtherInstances(peers.get, clock))
        self.events = EventStreams(self._states, clock, stream_s)

    def html(self) -> Response:
        """The page with the present state."""
        page = first_paint(self._shown.described(), self._states.look(), with_stores=self._with_stores)
        return HTMLResponse(page, headers=_GUARDED)

    def routes(self) -> Sequence[BaseRoute]:
        """All routes except that of the page itself."""
        return (
            Route(STATE_PATH, self._state),
            Route(EVENTS_PATH, self._events),
            Route(_TOPOLOGY_PATH, self._topology),
            Mount("/static", _Files(directory=_STATIC)),
        )

    # Not ``async``: answered in a thread of its own, because it may wait for a lock of the client.
    def _state(self, request: Request) -> Response:
        # A request from another instance gets the state of this one alone: otherwise instances would ask each other in
        # a circle.
        state = self._states.alone() if PART_HEADER in request.headers else self._states.state()
        return Response(state, media_type="application/json", headers=FRESH)

    # Not ``async``: a supervisor may have to wait for a worker.
    def _topology(self, _request: Request) -> Response:
        described = self._shown.described()
        if described is None:
            return PlainTextResponse(
                "the application is starting\n", 503, headers={**FRESH, "Retry-After": "1"}
            )
        # The picture is for people.
        facts = {
            name: value for name, value in msgspec.structs.asdict(described).items() if name != "picture"
        }
        return Response(msgspec.json.encode(facts), media_type="application/json", headers=FRESH)

    async def _events(self, _request: Request) -> Response:
        if self.events.is_full:
            return PlainTextResponse("too many pages are open\n", 503, headers={**FRESH, "Retry-After": "10"})
        return StreamingResponse(self.events.events(), media_type="text/event-stream", headers=FRESH)
