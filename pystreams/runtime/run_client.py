"""Runs a client in the calling thread, from its start to its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from pystreams.errors import BrokerUnavailableError
from pystreams.runtime.close_timeout import close_timeout, with_unclosed
from pystreams.runtime.signals import stop_on_signals
from pystreams.runtime.threads.activity import Activity
from pystreams.runtime.threads.progress import Progress

log = logging.getLogger(__name__)

_INTERVAL_S: Final = 0.1


class Runnable(Protocol):
    """The part of ``Streams`` that ``run_client`` needs."""

    @property
    def finished(self) -> bool: ...
    @property
    def failure(self) -> BaseException | None: ...
    def start(self, *, stop: threading.Event | None = None) -> None: ...
    def close(self, timeout: float | None = None) -> bool: ...
    def progress(self) -> Progress: ...
    def activities(self) -> Mapping[str, Activity]: ...
    def caught_up(self) -> bool: ...
    def request_commit(self) -> None: ...


def run_client(
    streams: Runnable,
    stop: threading.Event,
    close_timeout_ms: float,
    *,
    until_caught_up: bool,
    on_progress: Callable[[Progress], None] | None,
) -> None:
    """See ``Streams.run``. Raises the error that ended the client, or ``CloseTimeoutError`` if it does not close within
    ``close_timeout_ms`` (-1: without limit). If both happen, the error that ended the client also says why the client
    did not close."""
    closed = False
    limited = close_timeout_ms >= 0
    with stop_on_signals(stop):
        streams.start(stop=stop)
        try:
            while not streams.finished:
                if on_progress is not None:
                    on_progress(streams.progress())
                if until_caught_up and reached_the_end(streams):
                    break
                if stop.wait(_INTERVAL_S):
                    break
        finally:
            closed = streams.close(close_timeout_ms if limited else None)
    failure = streams.failure
    if limited and not closed:
        unclosed = close_timeout(close_timeout_ms, streams.progress().threads, streams.activities())
        failure = unclosed if failure is None else with_unclosed(failure, unclosed)
    if failure is not None:
        raise failure


def reached_the_end(streams: Runnable) -> bool:
    """Like ``Streams.caught_up``, but if all records are processed, it also requests the commit that may be missing. If
    the log does not answer, the result is False."""
    try:
        if streams.caught_up():
            return True
    except BrokerUnavailableError as error:
        log.warning("it is not known whether all records are processed: %s", error)
        return False
    if streams.progress().lag == 0:
        streams.request_commit()
    return False
