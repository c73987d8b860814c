"""``/metrics``, ``/live``, ``/ready``, ``/lag`` and ``/threads``: for Prometheus, Kubernetes, KEDA and ``pystreams
status``, which send no token."""

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

#: The number of threads that answer probes and scrapes. Other pages have their own threads, so they cannot occupy
#: these.
_THREADS: Final = 16

#: The number of requests that may wait at the same time for a page that may be slow; further ones get 503. Each of
#: these pages has its own threads.
_WAITING_MAX: Final = 8
_MANY: Final = f"{_WAITING_MAX} others wait for it"


def is_for_health(path: str) -> bool:
    """Whether a path is one of these."""
    return path in PATHS


class _Few:
    """Makes the answers of a page that may have to wait: ``/lag`` waits for the log, and ``/threads`` for the
    workers."""

    def __init__(self) -> None:
        self._waiting = 0

    @property
    def is_full(self) -> bool:
        """Whether no further request may wait."""
        return self._waiting >= _WAITING_MAX

    async def wait_for(self, answer: Callable[[], R]) -> R:
        """The answer, made in a thread of this page."""
        self._waiting += 1
        try:
            return await to_thread.run_sync(answer, limiter=self._limiter)
        finally:
            self._waiting -= 1

    # Made at the first use, because it belongs to the event loop, which does not run yet when this object is made.
    @cached_property
    def _limiter(self) -> CapacityLimiter:
        return CapacityLimiter(_WAITING_MAX)


class HealthPages:
    """The answers of these pages. Each answer is made in a thread, because it may wait for a lock of the client."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._asking_for_lag = _Few()
        self._asking_for_threads = _Few()

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
        if self._asking_for_lag.is_full:
            return _unknown("the lag is", _MANY)
        found = await self._asking_for_lag.wait_for(self._watched.lag)
        if found.lag is None:
            return _unknown("the lag is", found.why)
        return JSONResponse({"lag": found.lag, "topics": found.topics, "at_ms": found.at_ms}, headers=FRESH)

    async def _threads(self, _request: Request) -> Response:
        if self._asking_for_threads.is_full:
            return _unknown("the state of the threads is", _MANY)
        clients = await self._asking_for_threads.wait_for(self._watched.threads)
        return Response(msgspec.json.encode(clients), media_type="application/json", headers=FRESH)

    async def _in_thread(self, answer: Callable[[], R]) -> R:
        return await to_thread.run_sync(answer, limiter=self._limiter)

    # As in ``_Few``.
    @cached_property
    def _limiter(self) -> CapacityLimiter:
        return CapacityLimiter(_THREADS)


def _unknown(thing: str, why: str) -> Response:
    """The answer if ``thing`` ("the lag is") is not known. It must not be a lag of 0, because an autoscaler would then
    end most processes."""
    return refusal(
        503, "unknown", f"{thing} not known now", why=why, hint="ask again in a moment", **RETRY_AFTER
    )


def _answer(word: str, good: bool, reasons: Sequence[str]) -> Response:
    return JSONResponse({word: good, "reasons": list(reasons)}, 200 if good else 503, headers=FRESH)
