"""A supervisor gets an answer from its workers: each question gets a reply, whatever goes wrong, and a worker that
cannot answer hides no other one."""

from __future__ import annotations

import asyncio

import pytest

from pystreams.errors import SerializationError
from pystreams.serving.query_errors import BadQueryError, FailedError, UnreachableError
from pystreams.serving.stores.asking import Together
from pystreams.serving.stores.lines import Line
from pystreams.serving.stores.parts import StorePart
from pystreams.serving.stores.questions import Question
from tests.serving.asyncio_kit import run_apart
from tests.serving.worker_kit import Worker, asked_over_a_line

QUESTION = Question("counts", "a")


def test_a_worker_that_starts_again_does_not_hide_the_one_that_took_over() -> None:
    workers = [Worker(has=True), Worker(has=False)]
    together = Together(lambda: dict(enumerate(workers)))
    assert run_apart(together.ask(QUESTION)).entries
    workers[0].error = UnreachableError("store counts cannot be read yet", why="the application starts")
    workers[1].has = True
    assert run_apart(together.ask(QUESTION)).entries


@pytest.mark.parametrize("at_once", [False, True], ids=["in-a-task", "at-once"])
@pytest.mark.parametrize("error", [ValueError("no number"), SerializationError("no number")])
def test_whatever_a_serde_raises_is_reported_to_the_one_who_asks(error: Exception, at_once: bool) -> None:
    with pytest.raises(FailedError, match="no number"):
        asked_over_a_line(Worker(error, at_once=at_once), lambda line: line.ask(QUESTION))


def test_an_error_has_all_its_parts_after_a_line() -> None:
    wrong = BadQueryError("'x' is not a key of this store", why="its keys are K", hint="write it as JSON")
    wrong.fields = {"url": "in a URL this JSON is percent-encoded"}
    with pytest.raises(BadQueryError) as raised:
        asked_over_a_line(Worker(wrong), lambda line: line.ask(QUESTION))
    assert (raised.value.why, raised.value.hint, raised.value.fields) == (wrong.why, wrong.hint, wrong.fields)


@pytest.mark.parametrize("at_once", [False, True], ids=["in-tasks", "at-once"])
def test_many_questions_at_once_get_a_reply_each(at_once: bool) -> None:
    async def ask_many(line: Line) -> object:
        return await asyncio.gather(*[line.ask(Question("counts", key)) for key in keys])

    keys = [f"k{n}" for n in range(3_000)]
    found = asked_over_a_line(Worker(at_once=at_once), ask_many)
    assert isinstance(found, list)
    assert [part.entries[0].place.key.decode() for part in found] == keys


@pytest.mark.parametrize("at_once", [False, True], ids=["in-a-task", "at-once"])
def test_an_error_that_cannot_be_written_ends_no_line(at_once: bool) -> None:
    with pytest.raises(FailedError, match=r"half a pair: \?"):
        asked_over_a_line(
            Worker(SerializationError("half a pair: \ud800"), at_once=at_once),
            lambda line: line.ask(QUESTION),
        )


def test_a_request_that_is_cancelled_does_not_close_the_line_for_others() -> None:
    async def cancelled_and_then_asked(line: Line) -> object:
        first = asyncio.create_task(line.ask(QUESTION))
        # It begins to open the line, and no more.
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        return await line.ask(QUESTION)

    found = asked_over_a_line(Worker(), cancelled_and_then_asked)
    assert isinstance(found, StorePart)
    assert found.entries
