"""The exit codes of the command line. docs/cli.md documents them, and scripts rely on them."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from enum import IntEnum
from typing import Final, NoReturn

from pystreams.errors import AppLoadError, BrokerError, ConfigError, StreamsError, TopologyError

#: A command that a signal has ended before its work was done has the exit code of shells: this number and the signal's,
#: so 130 for Ctrl-C and 143 for SIGTERM.
SIGNALLED: Final = 128


class Exit(IntEnum):
    """How a command ended."""

    OK = 0
    #: The application, or the command, failed while running: a user function raised, a store cannot be used.
    FAILED = 1
    #: An option, an argument or a setting is wrong. typer uses the same code for its own errors.
    USAGE = 2
    #: The application could not be loaded, or its topology is wrong.
    APPLICATION = 3
    #: The log refused the operation: a topic is missing or has the wrong shape, a group is in use, the log cannot be
    #: reached.
    BROKER = 4
    #: Ctrl-C ended a command before its work was done.
    INTERRUPTED = SIGNALLED + signal.SIGINT


def end_now(code: int) -> NoReturn:
    """End the process although threads are still at work: its output is written, and nothing else is waited for."""
    for stream in (sys.stdout, sys.stderr):
        # The reader of the output may be gone.
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def exit_of(error: StreamsError) -> Exit:
    """The exit code for an error, by which scripts can distinguish kinds of errors."""
    if isinstance(error, ConfigError):
        return Exit.USAGE
    if isinstance(error, AppLoadError | TopologyError):
        return Exit.APPLICATION
    if isinstance(error, BrokerError):
        return Exit.BROKER
    return Exit.FAILED
