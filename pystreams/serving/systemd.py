"""Notifications for systemd, in units of ``Type=notify``: ready, status, watchdog.

systemd names its socket in NOTIFY_SOCKET. Without it nothing happens. Source: the manual pages sd_notify(3) and
sd_watchdog_enabled(3).
"""

from __future__ import annotations

import logging
import math
import os
import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from pystreams.clock import Clock
from pystreams.serving.watched import Watched

log = logging.getLogger(__name__)

#: How often to look at the application.
_LOOK_S: Final = 1.0

#: While the application restores its state, and while it stops, each look asks systemd to wait this much longer.
_EXTENSION_S: Final = 30

_STATUS_CHARACTERS_MAX: Final = 500


class SystemdNotifier:
    """Sends systemd the state of an application within a ``with`` block, in its own thread."""

    def __init__(self, watched: Watched, environment: Mapping[str, str], clock: Clock) -> None:
        self._watched = watched
        self._clock = clock
        self._path = environment.get("NOTIFY_SOCKET", "")
        watchdog = environment.get("WATCHDOG_USEC", "")
        patience_ms = int(watchdog) / 1000 if watchdog.isdecimal() else 0.0
        ours = environment.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        #: The interval of watchdog notifications: half of the time that systemd demands. None: it demands none.
        self._watchdog_ms = patience_ms / 2 if patience_ms and ours else None
        self._signed_ms = -math.inf
        self._ready = False
        self._stopping = False
        self._status = ""
        self._failed = False
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="systemd", daemon=True)

    def __enter__(self) -> Self:
        if self._path:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._path:
            self._ending.set()
            self._thread.join()
            self._stop()

    def _run(self) -> None:
        look_s = _LOOK_S if self._watchdog_ms is None else min(_LOOK_S, self._watchdog_ms / 2000)
        while True:
            try:
                self._look()
            except Exception:
                # This thread must not end: without watchdog notifications systemd would kill a healthy application.
                log.exception("the application's health is not known")
            if self._ending.wait(look_s):
                return

    def _look(self) -> None:
        health = self._watched.health()
        status = "; ".join(health.reasons)[:_STATUS_CHARACTERS_MAX] or "ready"
        if status != self._status:
            self._status = status
            self._send(f"STATUS={status}")
        if health.ready and not self._ready:
            self._ready = True
            self._send("READY=1")
        if health.stopping:
            self._stop()
        if health.live and (health.stopping or not self._ready):
            self._send(f"EXTEND_TIMEOUT_USEC={_EXTENSION_S * 1_000_000}")
        now_ms = self._clock.monotonic_ms()
        if self._watchdog_ms is not None and health.live and now_ms - self._signed_ms >= self._watchdog_ms:
            self._signed_ms = now_ms
            self._send("WATCHDOG=1")

    def _stop(self) -> None:
        if not self._stopping:
            self._stopping = True
            self._send("STOPPING=1")

    def _send(self, message: str) -> None:
        # A leading @ stands for the zero byte of an abstract socket.
        path = f"\0{self._path[1:]}" if self._path.startswith("@") else self._path
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
                notify.settimeout(_LOOK_S)
                notify.sendto(message.encode(errors="replace"), path)
        except OSError as error:
            if not self._failed:
                self._failed = True
                log.warning("systemd was not notified (%s): %s", message, error)
