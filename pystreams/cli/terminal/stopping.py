"""Ctrl-C, SIGTERM and SIGHUP end a command in the same way: it removes its temporary files, and reports what
remains."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import typer

from pystreams.cli.terminal.console import note
from pystreams.cli.terminal.exits import SIGNALLED

#: Signals of schedulers, of service managers and of a terminal that is closed. Python itself handles Ctrl-C.
_OTHERS: Final = (signal.SIGTERM, signal.SIGHUP)

_AGAIN_S: Final = 0.05


@contextmanager
def stopping(text: str) -> Iterator[None]:
    """Within the block a signal raises ``KeyboardInterrupt``. Behind the block the command then ends with a message
    (that of the exception, else ``text``) and the exit code of the signal, even if an error has followed: the signal
    may have ended processes that the clean-up needs. A second SIGTERM ends the process at once.

    An interrupt that Python drops, because it is raised in a callback of an import or in a finalizer, is raised again.
    A signal that is ignored (``nohup``) stays ignored. Outside of the main thread, which alone can handle signals,
    only ``KeyboardInterrupt`` itself is handled.
    """
    received: int = signal.SIGINT
    before: dict[int, Any] = {}

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received = number
        restore()
        raise KeyboardInterrupt

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    def handle_dropped(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, KeyboardInterrupt):
            usual(dropped)
            return
        if received != signal.SIGINT:
            before[received] = signal.signal(received, handle)
        # Later: Python would drop it here, too.
        again.append(threading.Timer(_AGAIN_S, signal.pthread_kill, (threading.get_ident(), received)))
        again[-1].start()

    usual, again = sys.unraisablehook, list[threading.Timer]()
    if threading.current_thread() is threading.main_thread():
        sys.unraisablehook = handle_dropped
        for number in _OTHERS:
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, handle)
    try:
        yield
    except BaseException as error:
        stopped = _interrupt_behind(error)
        if stopped is None:
            raise
        note(str(stopped) or text)
        raise typer.Exit(SIGNALLED + received) from None
    finally:
        for timer in again:
            timer.cancel()
        restore()
        sys.unraisablehook = usual


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The error itself, or the one during which it was raised, if that is an interrupt."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error
