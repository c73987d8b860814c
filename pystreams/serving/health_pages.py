"""``/metrics``, ``/live`` and ``/ready``: for Prometheus and Kubernetes, who bring no token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeVar

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from pystreams.serving.prometheus import exposition
from pystreams.serving.refusals import FRESH
from pystreams.serving.watched import Watched

R = TypeVar("R")

PATHS: Final = ("/metrics", "/live", "/ready")


#: So many threads answer them, besides those of other pages: whoever reads those takes none away from probes.
_THREADS: Final = 16


def is_for_health(scope: Scope) -> bool:
    """Whether a request is for one of these."""
    # Where the application is mounted, its own paths follow that of the mount.
    return scope["path"].removeprefix(scope.get("root_path", "")) in PATHS


class HealthPages:
    """The answers of these pages. Each is made in a thread, because it may wait for a lock of the client."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def routes(self) -> list[Route]:
        """Their routes."""
        return [
            Route(path, page)
            for path, page in zip(PATHS, (self._metrics, self._live, self._ready), strict=True)
        ]

    async def _metrics(self, request: Request) -> Response:
        accept = request.headers.get("accept", "")
        content, content_type = await self._in_thread(lambda: exposition(self._watched.samples(), accept))
        return Response(content, headers={**FRESH, "Content-Type": content_type})

    async def _live(self, _request: Request) -> Response:
        health = await self._in_thread(self._watched.health)
        return _answer("live", health.live, () if health.live else health.reasons)

    async def _ready(self, _request: Request) -> Response:
        health = await self._in_thread(self._watched.health)
        return _answer("ready", health.ready, health.reasons)

    async def _in_thread(self, answer: Callable[[], R]) -> R:
        return await to_thread.run_sync(answer, limiter=self._limiter)

    @cached_property
    def _limiter(self) -> CapacityLimiter:
        # It belongs to the event loop, which does not run yet while this object is made.
        return CapacityLimiter(_THREADS)


def _answer(word: str, good: bool, reasons: Sequence[str]) -> Response:
    return JSONResponse({word: good, "reasons": list(reasons)}, 200 if good else 503, headers=FRESH)
