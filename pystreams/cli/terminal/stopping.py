"""Ctrl-C, SIGTERM and SIGHUP end a command in the same way: it removes its temporary files, and says what is left."""

from __future__ import annotations

import signal
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


@contextmanager
def stopping(text: str) -> Iterator[None]:
    """Within the block a signal raises ``KeyboardInterrupt``. Behind the block the command then ends with a message
    (that of the exception, else ``text``) and the exit code of the signal, even if an error has followed: the signal
    may have ended processes that the clean-up needs. A second SIGTERM ends the process at once.

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

    if threading.current_thread() is threading.main_thread():
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
        restore()


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The error itself, or the one during which it was raised, if that is an interrupt."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error
