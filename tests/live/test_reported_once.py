"""What ends ``run`` is raised by it, and not reported a second time in the log."""

from __future__ import annotations

import logging

import pytest

from pystreams.app import App
from pystreams.errors import ProcessingError
from pystreams.runtime.streams import Streams
from pystreams.runtime.uncaught import UncaughtExceptionResponse
from tests.live.support import Log, eventually


def failing(log: Log, times: int) -> App:
    """Raises at the first record, ``times`` times."""
    raised: list[int] = []

    def fail(value: int) -> None:
        if len(raised) < times:
            raised.append(value)
            raise ValueError("a hiccup")

    app = log.app("failing", processing_exception_handler="fail")
    app.stream("in", key=str, value=int).peek(fail).to("out")
    log.create("in", "out")
    log.write("in", [("k", 1, 1)])
    return app


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [r for r in caplog.records if r.exc_info and r.levelno > logging.INFO]


def test_a_failure_that_run_raises_has_its_traceback_there_alone(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ProcessingError, match="a hiccup"):
        Streams(failing(log, 1), broker=log.broker).run()
    assert tracebacks(caplog) == []


def test_a_failure_that_a_new_thread_makes_up_for_is_in_the_log(
    log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    streams = Streams(failing(log, 1), broker=log.broker)
    streams.set_uncaught_exception_handler(lambda error: UncaughtExceptionResponse.REPLACE_THREAD)
    streams.run(until_caught_up=True)
    assert len(tracebacks(caplog)) == 1
    assert log.table("out") == {"k": 1}


def test_without_run_nobody_else_reports_it(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    streams = log.start(failing(log, 1))
    eventually(lambda: streams.finished, "the end")
    assert len(tracebacks(caplog)) == 1
