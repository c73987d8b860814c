"""Turns SIGINT, SIGTERM and SIGHUP into a request to stop. Source: the shutdown hooks of a JVM."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Within the block the first SIGINT, SIGTERM or SIGHUP sets ``stop``; a second SIGINT or SIGTERM is handled as
    before the block. An ignored SIGHUP (``nohup``) stays ignored. Outside of the main thread, which alone can set
    signal handlers, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {}

    def restore(*numbers: signal.Signals) -> None:
        for number in numbers:
            if number in before:
                signal.signal(number, before.pop(number))

    def handle(number: int, _frame: FrameType | None) -> None:
        # When a terminal is closed, the kernel and the shell may both send SIGHUP. The user has not asked twice then.
        if number != signal.SIGHUP:
            restore(signal.SIGINT, signal.SIGTERM)
        # Call ``set`` in another thread, because this one may be inside of ``stop.wait`` and hold the lock that ``set``
        # needs. Do not use ``threading.Thread``: its start needs a lock as well.
        _thread.start_new_thread(stop.set, ())

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue
        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        restore(*before)
