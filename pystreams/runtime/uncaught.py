"""What is to happen when a stream thread has failed: the user's handler decides."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum

log = logging.getLogger(__name__)


class UncaughtExceptionResponse(Enum):
    """What is to happen when a stream thread has failed. Source: StreamsUncaughtExceptionHandler."""

    REPLACE_THREAD = "replace_thread"
    SHUTDOWN_CLIENT = "shutdown_client"
    SHUTDOWN_APPLICATION = "shutdown_application"


UncaughtExceptionHandler = Callable[[BaseException], UncaughtExceptionResponse]


def shut_down_client(_error: BaseException) -> UncaughtExceptionResponse:
    """The handler of clients that were not given another one."""
    return UncaughtExceptionResponse.SHUTDOWN_CLIENT


def response_to(error: BaseException, handler: UncaughtExceptionHandler) -> UncaughtExceptionResponse:
    """What ``handler`` says. One that fails itself shuts the client down."""
    try:
        return handler(error)
    except Exception:
        log.exception("the uncaught exception handler itself failed; the client shuts down")
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT
