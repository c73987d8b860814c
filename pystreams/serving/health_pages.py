"""``/metrics``, ``/live`` and ``/ready``: for Prometheus and Kubernetes, who bring no token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pystreams.serving.prometheus import exposition
from pystreams.serving.refusals import FRESH
from pystreams.serving.watched import Watched

PATHS: Final = ("/metrics", "/live", "/ready")


def health_routes(watched: Watched) -> list[Route]:
    """The routes of these three."""

    # Not ``async``: each is answered in a thread of its own, because it may wait for a lock of the client.
    def metrics(request: Request) -> Response:
        content, content_type = exposition(watched.samples(), request.headers.get("accept", ""))
        return Response(content, headers={**FRESH, "Content-Type": content_type})

    def live(_request: Request) -> Response:
        health = watched.health()
        return _answer("live", health.live, () if health.live else health.reasons)

    def ready(_request: Request) -> Response:
        health = watched.health()
        return _answer("ready", health.ready, health.reasons)

    return [Route(path, page) for path, page in zip(PATHS, (metrics, live, ready), strict=True)]


def _answer(word: str, good: bool, reasons: Sequence[str]) -> Response:
    return JSONResponse({word: good, "reasons": list(reasons)}, 200 if good else 503, headers=FRESH)
