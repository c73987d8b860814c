"""``/metrics``, ``/live``, ``/ready``, ``/lag`` and ``/threads``: for Prometheus, Kubernetes, KEDA and ``pystreams
status``, who bring no token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final, TypeVar

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pystreams.serving.prometheus import exposition
from pystreams.serving.refusals import FRESH, RETRY_AFTER, refusal
from pystreams.serving.watched import Watched

R = TypeVar("R")

PATHS: Final = ("/metrics", "/live", "/ready", "/lag", "/threads")

#: The number of threads that answer probes and scrapes. Other pages have threads of their own, so they cannot take
#: these away.
_THREADS: Final = 16

#: The number of requests that may wait for the lag at once; more get 503. They have threads of their own, because the
#: log may answer slowly.
_LAGS: Final = 8


def is_for_health(path: str) -> bool:
    """Whether a path is one of these."""
    return path in PATHS


class HealthPages:
    """The answers of these pages. Each is made in a thread, because it may wait for a lock of the client."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._asking_for_lag = 0

    def routes(self) -> list[Route]:
        """Their routes."""
        return [
            Route(path, page)
            for path, page in zip(
                PATHS, (self._metrics, self._live, self._ready, self._lag, self._threads), strict=True
            )
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

    async def _lag(self, _request: Request) -> Response:
        if self._asking_for_lag >= _LAGS:
            return _unknown(f"{_LAGS} others wait for it")
        self._asking_for_lag += 1
        try:
            found = await to_thread.run_sync(self._watched.lag, limiter=self._lag_limiter)
        finally:
            self._asking_for_lag -= 1
        if found.lag is None:
            return _unknown(found.why)
        return JSONResponse({"lag": found.lag, "topics": found.topics, "at_ms": found.at_ms}, headers=FRESH)

    async def _threads(self, _request: Request) -> Response:
        clients = await self._in_thread(self._watched.threads)
        return Response(msgspec.json.encode(clients), media_type="application/json", headers=FRESH)

    async def _in_thread(self, answer: Callable[[], R]) -> R:
        return await to_thread.run_sync(answer, limiter=self._limiter)

    # Limiters belong to the event loop, which does not run yet while this object is made.

    @cached_property
    def _limiter(self) -> CapacityLimiter:
        return CapacityLimiter(_THREADS)

    @cached_property
    def _lag_limiter(self) -> CapacityLimiter:
        return CapacityLimiter(_LAGS)


def _unknown(why: str) -> Response:
    """The answer when the lag is not known. It is not a lag of 0: an autoscaler would end most processes."""
    return refusal(
        503, "unknown", "the lag is not known now", why=why, hint="ask again in a moment", **RETRY_AFTER
    )


def _answer(word: str, good: bool, reasons: Sequence[str]) -> Response:
    return JSONResponse({word: good, "reasons": list(reasons)}, 200 if good else 503, headers=FRESH)
