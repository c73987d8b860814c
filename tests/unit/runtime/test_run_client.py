"""A client that does not close in time says so, also if an error has ended it."""

from __future__ import annotations

import threading

import pytest

from pystreams.errors import CloseTimeoutError, ProcessingError, StreamsError
from pystreams.ids import TaskId
from pystreams.runtime.run_client import run_client
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.threads.activity import PROCESS, Activity
from pystreams.runtime.threads.progress import Progress, TaskProgress, ThreadProgress
from pystreams.runtime.threads.thread_state import ThreadState


class Client:
    """Its thread ``shop-2`` hangs in a function, unless it ``closes``."""

    finished = False

    def __init__(self, failure: BaseException | None, *, closes: bool = False) -> None:
        self.failure = failure
        self.closes = closes

    def start(self, *, stop: threading.Event | None = None) -> None: ...

    def close(self, timeout: float | None = None) -> bool:
        return self.closes

    def progress(self) -> Progress:
        task = TaskProgress(TaskId(0, 3), TaskStatus.RUNNING, ())
        return Progress(7, (ThreadProgress("shop-2", ThreadState.PENDING_SHUTDOWN, 7, (task,)),))

    def activities(self) -> dict[str, Activity]:
        return {"shop-2": Activity(PROCESS, 61_000.0, "0_3")}

    def caught_up(self) -> bool:
        return False

    def request_commit(self) -> None: ...


def raised_by(client: Client) -> BaseException:
    stop = threading.Event()
    stop.set()
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - it is looked at by the test
        run_client(client, stop, 2_000.0, until_caught_up=False, on_progress=None)
    return caught.value


def test_a_failure_also_names_the_threads_that_have_not_ended_and_what_is_not_committed() -> None:
    failure = ProcessingError("a function raised", where="task 0_1", why="no such city", hint="mend it")
    error = raised_by(Client(failure))
    assert error is failure
    assert isinstance(error, StreamsError)
    assert (error.what, error.where) == ("a function raised", "task 0_1")
    assert error.why == (
        "no such city; the last commit of 0_3 was not done: close_timeout_ms (2 s) is over; "
        "shop-2 processes 0_3 for 61.0 s"
    )
    assert error.hint.startswith("mend it; nothing is lost")
    assert error.why in str(error)
    assert error.threads_at_work


def test_so_does_an_error_of_another_kind() -> None:
    failure = ValueError("no such city")
    assert raised_by(Client(failure)) is failure
    (note,) = failure.__notes__
    assert "shop-2 processes 0_3" in note


def test_a_failure_of_a_client_that_closes_stays_as_it_is() -> None:
    failure = ProcessingError("a function raised", why="no such city")
    assert raised_by(Client(failure, closes=True)) is failure
    assert failure.why == "no such city"
    assert not failure.threads_at_work


def test_without_a_failure_it_is_an_error_of_its_own() -> None:
    error = raised_by(Client(None))
    assert isinstance(error, CloseTimeoutError)
    assert error.threads_at_work
