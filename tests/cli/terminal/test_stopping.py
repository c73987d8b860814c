"""A signal ends a command with its message and exit code, whatever else breaks on the way out."""

from __future__ import annotations

import os
import signal
import threading
import weakref
from collections.abc import Callable

import pytest
import typer

from pystreams.cli.terminal.stopping import stopping


def interrupted(number: signal.Signals, text: str = "") -> None:
    """Send a signal to this process, which has raised ``KeyboardInterrupt`` then."""
    try:
        os.kill(os.getpid(), number)
        signal.sigtimedwait([], 0)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(text) from None


def with_broken_clean_up(number: signal.Signals) -> None:
    try:
        interrupted(number)
    finally:
        raise ConnectionRefusedError


def dropping(call: Callable[[], None]) -> None:
    """Have Python drop what a call raises, and work on."""
    referenced = {0, 1}
    reference = weakref.ref(referenced, lambda _: call())
    del referenced
    assert reference() is None
    assert not threading.Event().wait(30)
    raise AssertionError("nothing ends the work")


@pytest.mark.parametrize("number,code", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_each_signal_has_its_exit_code(number, code, capsys):
    with pytest.raises(typer.Exit) as ended, stopping("Stopped. Run it again."):
        interrupted(number)
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == "Stopped. Run it again.\n"


def test_what_the_work_says_of_its_interruption_comes_first(capsys):
    with pytest.raises(typer.Exit), stopping("Stopped."):
        interrupted(signal.SIGTERM, "Stopped during the hand-over.")
    assert capsys.readouterr().err == "Stopped during the hand-over.\n"


@pytest.mark.parametrize("number,code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_error_of_the_clean_up_does_not_hide_the_signal(number, code, capsys):
    """A signal to the whole process group has ended Spark's JVM, which the clean-up talks to."""
    with pytest.raises(typer.Exit) as ended, stopping("Stopped."):
        with_broken_clean_up(number)
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == "Stopped.\n"


@pytest.mark.parametrize("number,code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_that_python_drops_is_raised_again(number, code, capsys):
    """It drops what is raised in a weak reference's callback; its imports have such callbacks."""
    with pytest.raises(typer.Exit) as ended, stopping("Stopped."):
        dropping(lambda: interrupted(number))
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == "Stopped.\n"


def test_an_error_without_a_signal_is_an_error():
    with pytest.raises(ConnectionRefusedError), stopping("Stopped."):
        raise ConnectionRefusedError


def test_behind_it_signals_do_what_they_did_before():
    before = signal.getsignal(signal.SIGTERM)
    with stopping("Stopped."):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
