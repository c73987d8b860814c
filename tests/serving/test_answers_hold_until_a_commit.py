"""A supervisor gives a worker's answer as of the last commit again without asking, until that worker commits: what it
gives is never older than what the worker would give."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator

import pytest

from pystreams import App
from pystreams.cli.commands.workers.silent import SilentWorker
from pystreams.processor import Processor
from pystreams.record import Record
from pystreams.serving.query_errors import UnreachableError
from pystreams.serving.stores import lines
from pystreams.serving.stores.asking import Together
from pystreams.serving.stores.ended_answers import EndedAnswers, shared_memory
from pystreams.serving.stores.lines import Line
from pystreams.serving.stores.local import LocalStores
from pystreams.serving.stores.parts import Entry, StorePart
from pystreams.serving.stores.questions import EntryPlace, Question
from tests.live.support import eventually
from tests.serving.asyncio_kit import run_apart
from tests.serving.queries_kit import Asked, asked, counting
from tests.serving.worker_kit import Worker, asked_over_a_line, line_to

pytestmark = pytest.mark.live

QUESTION = Question("counts", "a", freshness="committed")


@pytest.fixture(autouse=True)
def time_does_not_end_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a second may pass between two steps of a test."""
    monkeypatch.setattr(lines, "LASTS_MS", 600_000.0)


@pytest.fixture
def application(tmp_path) -> Iterator[Asked]:
    with asked(tmp_path, counting, commit_interval_ms=20) as application:
        write(application, 1)
        eventually(lambda: committed(application) == 1)
        yield application


def write(application: Asked, count: int) -> None:
    application.log.write("in", [("a", count, count)])


def committed(application: Asked) -> int:
    """The count that a thread finds that asks the store itself."""
    found = application.streams.store("counts", freshness="committed").get("a")
    return 0 if found is None else found.value


def count_in(part: object) -> int:
    assert isinstance(part, StorePart)
    return int(part.entries[0].shown.partition(b'"value":')[2].partition(b",")[0])


async def until_kept(line: Line, question: Question = QUESTION) -> StorePart:
    """The answer, asked for until the line keeps it: the first question about a store is not answered at once."""
    while line.ask_at_once(question) is None:
        part = await line.ask(question)
    return part


def over_a_line(application: Asked, ask: Callable[[Line], Awaitable[object]]) -> object:
    return asked_over_a_line(LocalStores(application.streams), ask)


def test_the_same_question_is_not_asked_again_until_the_next_commit(application: Asked) -> None:
    async def ask(line: Line) -> None:
        part = await until_kept(line)
        assert line.ask_at_once(QUESTION) == part
        write(application, 2)
        eventually(lambda: committed(application) == 2)
        assert line.ask_at_once(QUESTION) is None
        assert count_in(await line.ask(QUESTION)) == 2

    over_a_line(application, ask)


def test_no_answer_is_older_than_a_commit_that_has_ended_before_the_question(application: Asked) -> None:
    commits = 100

    def write_one_for_each_commit() -> None:
        for count in range(2, commits + 1):
            write(application, count)
            eventually(lambda count=count: committed(application) == count)

    async def ask(line: Line) -> int:
        await until_kept(line)
        writing = threading.Thread(target=write_one_for_each_commit)
        writing.start()
        at_once = last = 0
        try:
            while last < commits:
                before = committed(application)
                part = line.ask_at_once(QUESTION)
                at_once += part is not None
                found = count_in(part or await line.ask(QUESTION))
                assert found >= max(before, last)
                last = found
        finally:
            writing.join()
        return at_once

    at_once = over_a_line(application, ask)
    assert isinstance(at_once, int)
    assert at_once > 0


def test_an_absent_key_is_found_after_the_commit_that_brings_it(application: Asked) -> None:
    absent = Question("counts", "new", freshness="committed")

    async def ask(line: Line) -> None:
        assert (await until_kept(line, absent)).entries == []
        application.log.write("in", [("new", 1, 5)])
        eventually(lambda: application.streams.store("counts", freshness="committed").get("new"))
        assert line.ask_at_once(absent) is None
        assert (await line.ask(absent)).entries != []

    over_a_line(application, ask)


@pytest.mark.parametrize(
    "other",
    [
        Question("counts", "a"),
        Question("counts", "a", freshness="committed", position={"in": {0: 1}}),
        Question("counts", None, freshness="committed"),
        Question("counts", "b", freshness="committed"),
    ],
    ids=["latest", "position", "range", "another key"],
)
def test_other_questions_are_asked(application: Asked, other: Question) -> None:
    async def ask(line: Line) -> None:
        await until_kept(line)
        assert line.ask_at_once(other) is None

    over_a_line(application, ask)


def test_a_task_that_leaves_the_process_takes_its_answers_along(application: Asked) -> None:
    async def ask(line: Line) -> None:
        await until_kept(line)
        application.streams.close(60_000)
        assert line.ask_at_once(QUESTION) is None

    over_a_line(application, ask)


def test_a_task_whose_processors_take_long_to_close_answers_nothing_meanwhile(tmp_path) -> None:
    closing, may_end = threading.Event(), threading.Event()

    class Slow(Processor[str, int, str, int]):
        def process(self, record: Record[str, int]) -> None: ...

        def close(self) -> None:
            closing.set()
            may_end.wait(60)

    def build(app: App) -> None:
        app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().process(Slow)

    async def ask(line: Line) -> None:
        await until_kept(line)
        ending = threading.Thread(target=application.streams.close, args=(60_000,))
        ending.start()
        try:
            assert closing.wait(60)
            assert line.ask_at_once(QUESTION) is None
        finally:
            may_end.set()
            ending.join()

    with asked(tmp_path, build, partitions=1, commit_interval_ms=20) as application:
        write(application, 1)
        eventually(lambda: committed(application) == 1)
        over_a_line(application, ask)


def test_what_a_process_that_is_gone_has_said_holds_no_longer(application: Asked) -> None:
    async def ask(line: Line) -> None:
        await until_kept(line)
        line.hang_up()
        assert line.ask_at_once(QUESTION) is None

    over_a_line(application, ask)


class Lasting(Worker):
    """All its answers hold, because it never commits: as those of a process that stands still."""

    def lasts_until(self, question: Question, part: StorePart, ended: Callable[[], None]) -> bool:
        self.ended = ended
        return True


def test_a_process_that_stands_still_is_asked_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def is_kept(line: Line) -> bool:
        await line.ask(QUESTION)
        return line.ask_at_once(QUESTION) is not None

    assert asked_over_a_line(Lasting(at_once=True), is_kept) is True
    monkeypatch.setattr(lines, "LASTS_MS", 0.0)
    assert asked_over_a_line(Lasting(at_once=True), is_kept) is False


def test_a_commit_while_the_answer_is_on_its_way_counts() -> None:
    worker = Lasting(at_once=True)

    async def is_kept(line: Line) -> bool:
        part = await line.ask(QUESTION)
        worker.ended()
        return part is not None and line.ask_at_once(QUESTION) is not None

    assert asked_over_a_line(worker, is_kept) is False


class Committing(Worker):
    """It commits when it is told to, and notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(at_once=True)
        self.asked: list[str | None] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        #: The key before whose next answer it commits, and the key whose next question it refuses.
        self.commits_before: str | None = None
        self.refuses: str | None = None
        self._at_end: list[Callable[[], None]] = []

    def ask_at_once(self, question: Question) -> StorePart | None:
        self.asked.append(question.key)
        self.may_answer.wait(60)
        if self.refuses == question.key:
            self.refuses = None
            raise UnreachableError("not now", why="it starts")
        return super().ask_at_once(question)

    def lasts_until(self, question: Question, part: StorePart, ended: Callable[[], None]) -> bool:
        self._at_end.append(ended)
        if self.commits_before == question.key:
            self.commits_before = None
            ended()
        return True

    def commit(self) -> None:
        for ended in self._at_end:
            ended()
        self._at_end.clear()
        self.asked.clear()


def of_key(key: str) -> Question:
    return Question("counts", key, freshness="committed")


async def answer(line: Line, key: str) -> StorePart:
    question = of_key(key)
    return line.ask_at_once(question) or await line.ask(question)


async def repeat(line: Line, keys: Iterable[str]) -> None:
    """Each key is asked for twice."""
    for key in keys:
        await answer(line, key)
        assert line.ask_at_once(of_key(key)) is not None


def test_the_first_repeated_question_after_a_commit_renews_the_others() -> None:
    worker = Committing()

    async def ask(line: Line) -> None:
        await repeat(line, "abc")
        await answer(line, "once")
        worker.commit()
        await answer(line, "new")
        assert worker.asked == ["new"]
        await answer(line, "b")
        await repeat(line, "ac")
        # First the question for which somebody waits.
        assert worker.asked == ["new", "b", "a", "c"]

    asked_over_a_line(worker, ask)


def test_what_was_not_asked_for_again_is_not_renewed_a_second_time() -> None:
    worker = Committing()

    async def ask(line: Line) -> None:
        await repeat(line, "abc")
        worker.commit()
        await answer(line, "a")
        await answer(line, "b")
        await repeat(line, "a")
        worker.commit()
        await answer(line, "a")
        await answer(line, "last")
        await answer(line, "c")
        assert worker.asked == ["a", "b", "last", "c"]

    asked_over_a_line(worker, ask)


def test_the_hundred_answers_that_were_repeated_last_are_renewed_together() -> None:
    worker = Committing()
    keys = [f"k{number}" for number in range(150)]

    async def ask(line: Line) -> None:
        await repeat(line, keys)
        worker.commit()
        await answer(line, "k50")
        await answer(line, "last")
        assert worker.asked == [*keys[50:], "last"]

    asked_over_a_line(worker, ask)


@pytest.mark.parametrize("trouble", ["commits_before", "refuses"])
def test_whoever_waits_for_a_renewal_that_gives_nothing_asks_again(trouble: str) -> None:
    worker = Committing()

    async def ask(line: Line) -> None:
        await repeat(line, "ab")
        worker.commit()
        setattr(worker, trouble, "b")
        worker.may_answer.clear()
        first = asyncio.create_task(line.ask(of_key("a")))
        await asyncio.sleep(0)
        others = [asyncio.create_task(line.ask(of_key("b"))) for _ in range(2)]
        await asyncio.sleep(0)
        worker.may_answer.set()
        assert all(part.entries for part in await asyncio.gather(first, *others))
        assert worker.asked == ["a", "b", "b", "b"]

    asked_over_a_line(worker, ask)


def test_those_who_wait_for_a_renewal_do_not_need_the_one_who_began_it() -> None:
    worker = Committing()

    async def ask(line: Line) -> None:
        await repeat(line, "ab")
        worker.commit()
        worker.may_answer.clear()
        first = asyncio.create_task(line.ask(of_key("a")))
        await asyncio.sleep(0)
        others = [asyncio.create_task(line.ask(of_key("b"))) for _ in range(3)]
        await asyncio.to_thread(eventually, lambda: worker.asked)
        first.cancel()
        others[0].cancel()
        worker.may_answer.set()
        assert all(part.entries for part in await asyncio.gather(*others[1:]))
        assert worker.asked == ["a", "b"]

    asked_over_a_line(worker, ask)


def test_nobody_waits_for_a_renewal_that_is_not_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Committing()

    async def ask(line: Line) -> None:
        await repeat(line, "ab")
        worker.commit()
        monkeypatch.setattr(lines, "LASTS_MS", 10.0)
        worker.may_answer.clear()
        first = asyncio.create_task(line.ask(of_key("a")))
        await asyncio.sleep(0)
        second = asyncio.create_task(line.ask(of_key("b")))
        await asyncio.wait(line._renewing.values())
        worker.may_answer.set()
        assert (await second).entries
        assert (await first).entries
        assert worker.asked == ["a", "b", "b"]

    asked_over_a_line(worker, ask)


def test_all_who_wait_learn_that_the_process_is_gone() -> None:
    worker = Committing()

    async def ask(line: Line) -> None:
        await repeat(line, "ab")
        worker.commit()
        worker.may_answer.clear()
        asking = [asyncio.create_task(line.ask(of_key(key))) for key in "abb"]
        await asyncio.to_thread(eventually, lambda: worker.asked)
        line.hang_up()
        worker.may_answer.set()
        errors = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(error) for error in errors] == [ConnectionError] * 3

    asked_over_a_line(worker, ask)


def test_among_several_workers_the_one_that_had_the_key_is_looked_at() -> None:
    async def ask() -> None:
        having, other = line_to(Lasting(at_once=True)), line_to(Lasting(has=False, at_once=True))
        together = Together(lambda: {1: other, 2: having})
        try:
            assert together.ask_at_once(QUESTION) is None
            part = await together.ask(QUESTION)
            assert together.ask_at_once(QUESTION) == part
            assert together.ask_at_once(Question("counts", "b", freshness="committed")) is None
            having.hang_up()
            assert together.ask_at_once(QUESTION) is None
        finally:
            having.hang_up()
            other.hang_up()

    run_apart(ask())


def test_the_only_worker_is_looked_at_for_a_key_whose_partition_is_not_known() -> None:
    class Unknown(Lasting):
        """It has all partitions, and the key is in none of them."""

        def _answer(self, question: Question) -> StorePart:
            return StorePart(read=[0, 1], partitions=2)

    async def ask(line: Line) -> None:
        together = Together(lambda: {1: line})
        part = await together.ask(QUESTION)
        assert (part.entries, part.missing()) == ([], set())
        assert together.ask_at_once(QUESTION) == part
        worker.ended()
        assert together.ask_at_once(QUESTION) is None

    worker = Unknown(at_once=True)
    asked_over_a_line(worker, ask)


def test_a_part_without_the_partition_of_the_key_is_no_answer() -> None:
    class Elsewhere(Lasting):
        """It had the partition before, and has it no longer."""

        def _answer(self, question: Question) -> StorePart:
            read = [0] if self.has else []
            entries = [Entry(EntryPlace(b"a"), b"1")] if self.has else []
            return StorePart(entries, read=read, partitions=1, partition=0, single=True)

    worker = Elsewhere(at_once=True)

    async def ask(line: Line) -> None:
        together = Together(lambda: {1: line})
        await together.ask(QUESTION)
        assert together.ask_at_once(QUESTION) is not None
        worker.has = False
        await line.ask(QUESTION)
        assert line.ask_at_once(QUESTION) is not None
        assert together.ask_at_once(QUESTION) is None

    asked_over_a_line(worker, ask)


@pytest.mark.parametrize("of_the_system", [True, False], ids=["in memory", "in a file"])
def test_what_another_process_adds_is_seen(monkeypatch: pytest.MonkeyPatch, of_the_system: bool) -> None:
    if not of_the_system:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    descriptor = shared_memory()
    ended = EndedAnswers(descriptor)
    assert ended.count() == 0
    add = f"from pystreams.serving.stores.ended_answers import EndedAnswers; EndedAnswers({descriptor}).add()"
    for count in (1, 2):
        subprocess.run([sys.executable, "-c", add], check=True, timeout=60, pass_fds=[descriptor])
        assert ended.count() == count
    os.close(descriptor)


def test_threads_that_add_at_the_same_time_lose_nothing() -> None:
    descriptor = shared_memory()
    ended = EndedAnswers(descriptor)
    os.close(descriptor)
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=lambda: [ended.add() for _ in range(2_000)]) for _ in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    finally:
        sys.setswitchinterval(interval_s)
    assert ended.count() == 8_000


def test_a_silent_worker_hides_no_other_one() -> None:
    silent = SilentWorker(1, 7_000)

    async def ask(line: Line) -> None:
        together = Together(lambda: {1: silent, 2: line})
        assert (await together.ask(QUESTION)).entries
        assert await together.stores() == []
        with pytest.raises(UnreachableError, match="worker 1 does not answer") as refused:
            await Together(lambda: {1: silent}).ask(QUESTION)
        assert "it has not reported for 7 s" in refused.value.why

    asked_over_a_line(Worker(), ask)
