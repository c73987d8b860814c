"""Questions to a stream thread that come while it is at work are asked in one call; each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from pystreams.errors import StateError
from pystreams.runtime.queries.gathered_reads import GatheredReads
from tests.serving.asyncio_kit import run_apart


class Thread:
    """A stream thread that calls what it has been given when it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[[Any], Any], Future[Any]]] = []
        self.called = asyncio.Event()

    def call(self, function: Callable[[Any], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls.append((function, future))
        self.called.set()
        return future

    def answer(self, tasks: Any = None) -> None:
        for function, future in self.calls:
            future.set_result(function(tasks))
        self.calls.clear()
        self.called.clear()

    def end(self) -> None:
        for _, future in self.calls:
            future.set_exception(StateError("the thread has ended"))
        self.calls.clear()


def with_questions(
    *questions: Callable[[Any], Any], then: Callable[[Thread, list[asyncio.Task[Any]]], Any]
) -> list[Any]:
    """The answers of a thread, or the errors instead of them, after ``then`` was called."""

    async def main() -> list[Any]:
        thread, reads = Thread(), GatheredReads()
        asked = [asyncio.create_task(reads.ask(thread, question)) for question in questions]  # type: ignore[arg-type]
        await thread.called.wait()
        assert len(thread.calls) == 1
        await asyncio.to_thread(then, thread, asked)
        return await asyncio.gather(*asked, return_exceptions=True)

    return run_apart(main())


def test_questions_that_come_together_are_one_call() -> None:
    found = with_questions(
        lambda tasks: (tasks, 1), lambda tasks: (tasks, 2), then=lambda thread, _: thread.answer("tasks")
    )
    assert found == [("tasks", 1), ("tasks", 2)]


def test_an_error_is_that_of_its_own_question() -> None:
    def fails(_tasks: Any) -> None:
        raise ValueError("the read's own")

    found = with_questions(fails, lambda _: 2, then=lambda thread, _: thread.answer())
    assert isinstance(found[0], ValueError)
    assert found[1] == 2


def test_a_thread_that_ends_leaves_nobody_waiting() -> None:
    found = with_questions(lambda _: 1, lambda _: 2, then=lambda thread, _: thread.end())
    assert all(isinstance(one, StateError) for one in found)
    assert len(found) == 2


def test_a_question_that_nobody_waits_for_any_more_is_not_answered() -> None:
    read: list[int] = []

    async def main() -> None:
        thread, reads = Thread(), GatheredReads()
        asked = [
            asyncio.create_task(reads.ask(thread, lambda _, number=number: read.append(number)))  # type: ignore[arg-type]
            for number in (1, 2)
        ]
        await thread.called.wait()
        asked[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked[0]
        await asyncio.to_thread(thread.answer)
        await asked[1]

    run_apart(main())
    assert read == [2]


def test_a_question_after_a_call_is_the_next_call() -> None:
    async def main() -> list[int]:
        thread, reads = Thread(), GatheredReads()
        found = []
        for number in (1, 2):
            asked = asyncio.create_task(reads.ask(thread, lambda _, number=number: number))  # type: ignore[arg-type]
            await thread.called.wait()
            await asyncio.to_thread(thread.answer)
            found.append(await asked)
        return found

    assert run_apart(main()) == [1, 2]
