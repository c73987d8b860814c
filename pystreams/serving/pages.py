"""What is at each path: ``/metrics``, ``/live``, ``/ready``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pystreams.serving.prometheus import exposition
from pystreams.serving.watched import Watched

PATHS: Final = ("/metrics", "/live", "/ready")

#: Nothing here may be kept by anybody in between.
_FRESH: Final = {"Cache-Control": "no-store"}


def pages(watched: Watched, hosts: Sequence[str]) -> Starlette:
    """The pages of an application. Requests must be for one of ``hosts`` (``*``: any): where only programs of the same
    machine may read, no web site must come in through a browser, under a name of its own."""

    # Not ``async``: each is answered in a thread of its own, because it may wait for a lock of the client.
    def metrics(request: Request) -> Response:
        content, content_type = exposition(watched.samples(), request.headers.get("accept", ""))
        return Response(content, headers={**_FRESH, "Content-Type": content_type})

    def live(_request: Request) -> Response:
        health = watched.health()
        return _answer("live", health.live, () if health.live else health.reasons)

    def ready(_request: Request) -> Response:
        health = watched.health()
        return _answer("ready", health.ready, health.reasons)

    def overview(_request: Request) -> Response:
        return PlainTextResponse("".join(f"{path}\n" for path in PATHS), headers=_FRESH)

    endpoints = (metrics, live, ready)
    routes = [Route(path, endpoint) for path, endpoint in zip(PATHS, endpoints, strict=True)]
    guard = Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    return Starlette(routes=[Route("/", overview), *routes], middleware=[guard])


def _answer(word: str, good: bool, reasons: Sequence[str]) -> Response:
    return JSONResponse({word: good, "reasons": list(reasons)}, 200 if good else 503, headers=_FRESH)
