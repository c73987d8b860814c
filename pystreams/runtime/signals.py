"""SIGINT and SIGTERM as a request to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Within the block the first SIGINT or SIGTERM sets ``stop``; a second one does what it did before. Outside of the
    main thread, which alone may handle signals, nothing is changed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[signal.Signals, Any] = {}

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    def handle(_number: int, _frame: FrameType | None) -> None:
        restore()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
