"""Asks the other instances of an application for their states, so that the page of one instance shows all of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple

import msgspec

from pystreams.clock import Clock
from pystreams.serving.live.look import ClientLook, Look
from pystreams.serving.query_errors import QueryError

log = logging.getLogger(__name__)

#: The path at which an instance is asked.
STATE_PATH: Final = "/state"

#: At most this many other instances are asked. For all others, the page shows only what the group knows of them.
_INSTANCES_MAX: Final = 16

#: The shortest time between two requests to the same instance.
_ASK_MS: Final = 900.0
#: A thread without an instance to ask ends after this time.
_IDLE_S: Final = 10.0
#: An instance is shown for this time after its last answer.
_SHOWN_MS: Final = 5_000.0

#: Requests a path of an endpoint (``host:port``); returns status and content. Raises ``OSError`` and ``QueryError``.
Get = Callable[[str, str], tuple[int, bytes]]


class _Answer(msgspec.Struct):
    """The part of an instance's state that is used here."""

    clients: list[ClientLook]


class _Known(NamedTuple):
    """An answer, and the time at which it came (monotonic clock)."""

    clients: list[ClientLook]
    at_ms: float


class OtherInstances:
    """Sends requests, in its own threads, when ``clients`` is called: the caller gets the last answers, and does not
    wait for a silent instance."""

    def __init__(self, get: Get, clock: Clock) -> None:
        self._get = get
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        #: When each instance was last asked; below it the instances that are being asked, and those that do not answer.
        self._asked_ms: dict[str, float] = {}
        self._asking: set[str] = set()
        self._silent: set[str] = set()
        #: The instances to ask next, and the number of threads: at most one for each instance that is being asked.
        self._due: SimpleQueue[str] = SimpleQueue()
        self._threads = 0

    def clients(self, own: Look) -> list[ClientLook]:
        """The clients of the other instances as of a moment ago. ``own``: the look of this instance, with its group."""
        now_ms = self._clock.monotonic_ms()
        endpoints = _endpoints(own)
        with self._lock:
            for known in (self._known, self._asked_ms):
                for gone in known.keys() - set(endpoints):
                    del known[gone]
            self._silent &= set(endpoints)
            for endpoint in endpoints:
                if (
                    endpoint not in self._asking
                    and now_ms - self._asked_ms.get(endpoint, -_ASK_MS) >= _ASK_MS
                ):
                    self._asked_ms[endpoint] = now_ms
                    self._asking.add(endpoint)
                    self._due.put(endpoint)
                    if self._threads < len(self._asking):
                        self._threads += 1
                        threading.Thread(target=self._keep_asking, name="other-instance", daemon=True).start()
            fresh = [
                known.clients for _, known in sorted(self._known.items()) if now_ms - known.at_ms < _SHOWN_MS
            ]
        ours = {client.client_id for client in own.clients}
        return [client for clients in fresh for client in clients if client.client_id not in ours]

    def _keep_asking(self) -> None:
        while (endpoint := self._next_due()) is not None:
            try:
                self._ask(endpoint)
            except Exception:
                log.exception("the instance at %s could not be asked", endpoint)

    def _next_due(self) -> str | None:
        """The next instance to ask; None: there is none, and the thread ends."""
        with suppress(Empty):
            return self._due.get(timeout=_IDLE_S)
        with self._lock:
            with suppress(Empty):
                return self._due.get_nowait()
            self._threads -= 1
            return None

    def _ask(self, endpoint: str) -> None:
        found: list[ClientLook] | None = None
        try:
            status, content = self._get(endpoint, STATE_PATH)
            if status == 200:
                found = msgspec.json.decode(content, type=_Answer).clients
            else:
                self._note(endpoint, f"it answers with status {status}")
        except (OSError, QueryError, msgspec.MsgspecError) as error:
            self._note(endpoint, str(error))
        finally:
            with self._lock:
                self._asking.discard(endpoint)
                if found is not None:
                    self._silent.discard(endpoint)
                    named = [
                        msgspec.structs.replace(client, endpoint=endpoint, group=None) for client in found
                    ]
                    self._known[endpoint] = _Known(named, self._clock.monotonic_ms())

    def _note(self, endpoint: str, why: str) -> None:
        """Log once why an instance does not answer."""
        with self._lock:
            if endpoint in self._silent:
                return
            self._silent.add(endpoint)
        log.info("the live page does not show the instance at %s: %s", endpoint, why)


def _endpoints(own: Look) -> Sequence[str]:
    """The endpoints of the other instances of the group."""
    if own.group is None:
        return ()
    threads = {thread.name for client in own.clients for thread in client.threads}
    ours = {member.endpoint for member in own.group.members if member.thread in threads}
    return sorted({member.endpoint for member in own.group.members if member.endpoint} - ours)[
        :_INSTANCES_MAX
    ]
