"""Calls the user's handler, which decides what happens after a stream thread has failed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum

log = logging.getLogger(__name__)


class UncaughtExceptionResponse(Enum):
    """The possible responses to the failure of a stream thread. Source: StreamsUncaughtExceptionHandler."""

    REPLACE_THREAD = "replace_thread"
    SHUTDOWN_CLIENT = "shutdown_client"
    SHUTDOWN_APPLICATION = "shutdown_application"


UncaughtExceptionHandler = Callable[[BaseException], UncaughtExceptionResponse]


def shut_down_client(_error: BaseException) -> UncaughtExceptionResponse:
    """The default handler."""
    return UncaughtExceptionResponse.SHUTDOWN_CLIENT


def response_to(error: BaseException, handler: UncaughtExceptionHandler) -> UncaughtExceptionResponse:
    """The response of ``handler``. If the handler itself fails, the client shuts down."""
    try:
        return handler(error)
    except Exception:
        log.exception("the uncaught exception handler itself failed; the client shuts down")
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT
