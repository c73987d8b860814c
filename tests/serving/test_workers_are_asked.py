"""A supervisor gets an answer from its workers: each question gets a reply, whatever goes wrong, and a worker that
cannot answer hides no other one."""

from __future__ import annotations

import asyncio

import pytest

from pystreams.errors import SerializationError
from pystreams.serving.query_errors import BadQueryError, FailedError, UnreachableError
from pystreams.serving.stores.asking import Together
from pystreams.serving.stores.lines import Line
from pystreams.serving.stores.parts import Entry, StorePart
from pystreams.serving.stores.questions import EntryPlace, Question
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


class Half(Worker):
    """It has one of two partitions, with one key each, and a standby of both. A key is the number of its partition."""

    def __init__(self, *tasks: int) -> None:
        super().__init__()
        self.tasks = list(tasks)

    def ask_at_once(self, question: Question) -> StorePart:
        return self._answer(question)

    def _answer(self, question: Question) -> StorePart:
        if self.error is not None:
            raise self.error
        key = None if question.key is None else int(question.key)
        wanted = [one for one in question.only or (0, 1) if key in (None, one)]
        read = [one for one in wanted if question.standbys or one in self.tasks]
        entries = [
            Entry(EntryPlace(b"%d" % one), b"task" if one in self.tasks else b"standby") for one in read
        ]
        lag = None if set(read) <= set(self.tasks) else 5
        return StorePart(entries, read=read, partitions=2, partition=key, lag=lag)


def test_standbys_in_workers_answer_once_and_only_for_what_runs_in_none_of_them() -> None:
    def found() -> tuple[list[bytes], int | None]:
        part = run_apart(together.ask(Question("counts", freshness="committed", standbys=True)))
        return [entry.shown for entry in part.entries], part.lag

    workers = [Half(0), Half(1), Half()]
    together = Together(lambda: dict(enumerate(workers)))
    assert found() == ([b"task", b"task"], None)
    workers[0].tasks.clear()
    assert found() == ([b"standby", b"task"], 5)
    workers[0].error = UnreachableError("store counts cannot be read yet", why="the application starts")
    assert found() == ([b"standby", b"task"], 5)


def test_a_standby_that_has_answered_for_a_key_leaves_it_to_the_worker_that_runs_the_task_now() -> None:
    def found() -> list[bytes]:
        question = Question("counts", "0", freshness="committed", standbys=True)
        part = together.ask_at_once(question) or run_apart(together.ask(question))
        return [entry.shown for entry in part.entries]

    workers = [Half(), Half()]
    together = Together(lambda: dict(enumerate(workers)))
    assert found() == [b"standby"]
    for now, other in (workers, workers[::-1], workers):
        now.tasks, other.tasks = [0], []
        assert found() == [b"task"]
    workers[0].tasks = []
    assert found() == [b"standby"]


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
