"""An answer as of the last commit is kept, and given again until one of the tasks that it is from has committed, and
not longer."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
import pytest

from pystreams import App, TimeWindows
from pystreams.errors import StateError
from pystreams.serving.query_errors import UnreachableError
from pystreams.serving.stores import local
from pystreams.serving.stores.kept_answers import KeptAnswers
from pystreams.serving.stores.local import LocalStores
from pystreams.serving.stores.parts import StorePart
from pystreams.serving.stores.questions import EntryPlace, Question
from pystreams.state.commit_mark import CommitMark
from tests.live.support import eventually
from tests.serving.asyncio_kit import run_apart
from tests.serving.queries_kit import Asked, asked

pytestmark = pytest.mark.live


def several(app: App) -> None:
    numbers = app.stream("in", key=str, value=str).group_by_key()
    numbers.count(name="counts")
    numbers.reduce(lambda _, text: text, name="texts")
    numbers.windowed_by(TimeWindows.tumbling(10, grace=1_000_000)).count(name="hourly")


class Reads:
    """Asks the stores of an application, and counts how many pages are read for it."""

    def __init__(self, application: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pages = 0
        self.application = application
        self.stores = LocalStores(application.streams)
        read_page = local.read_page

        def counted(*arguments: Any) -> Any:
            self.pages += 1
            return read_page(*arguments)

        monkeypatch.setattr(local, "read_page", counted)

    def ask(self, store: str, key: str, **demands: Any) -> StorePart:
        question = Question(store, key, freshness="committed", **demands)
        # The first question about a store is not answered at once: its serdes are made in a thread.
        return self.stores.ask_at_once(question) or run_apart(self.stores.ask(question))

    def shown(self, store: str, key: str, **demands: Any) -> list[str]:
        return [entry.shown.decode() for entry in self.ask(store, key, **demands).entries]

    def write(self, *records: tuple[str, str, int]) -> None:
        self.application.log.write("in", records, value=str)

    def count(self, key: str) -> int | None:
        """What is found by a thread that asks the store itself."""
        try:
            found = self.application.streams.store("counts", freshness="committed").get(key)
        except StateError:
            return None
        return None if found is None else found.value


@pytest.fixture
def reads(tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    with asked(tmp_path, several, commit_interval_ms=50) as application:
        reads = Reads(application, monkeypatch)
        reads.write(("a", "x", 1), ("a", "y", 25), ("b", "z", 2))
        eventually(lambda: reads.shown("hourly", "a", time_from=20) and reads.shown("counts", "b"))
        yield reads


@pytest.mark.parametrize("key", ["a", "nobody"])
def test_nothing_is_read_for_the_same_question_until_the_next_commit(reads: Reads, key: str) -> None:
    first = reads.ask("counts", key)
    before = reads.pages
    assert [reads.ask("counts", key) for _ in range(10)] == [first] * 10
    assert reads.pages == before


def test_each_commit_shows_in_the_next_answer(reads: Reads) -> None:
    for count in range(3, 30):
        reads.ask("counts", "a")
        reads.write(("a", "more", count))
        eventually(lambda count=count: reads.count("a") == count)
        assert f'"value":{count},' in reads.shown("counts", "a")[0]


def test_a_key_that_was_absent_is_found_once_it_is_committed(reads: Reads) -> None:
    for key in map(str, range(8)):
        assert reads.ask("counts", key).entries == []
        reads.write((key, "first", 30))
        eventually(lambda key=key: reads.count(key) == 1)
        assert reads.shown("counts", key) != []


def test_questions_about_the_same_key_are_told_apart(reads: Reads) -> None:
    whole = reads.shown("hourly", "a")
    assert len(whole) == 2
    for _ in range(2):
        assert reads.shown("hourly", "a") == whole
        assert reads.shown("hourly", "a", time_from=20) == whole[1:]
        assert reads.shown("hourly", "a", time_to=10) == whole[:1]
        assert reads.shown("hourly", "a", limit=1) == whole[:1]
        assert reads.shown("hourly", "a", after=EntryPlace(b"a", 0)) == whole[1:]
        assert reads.shown("hourly", "b") != whole
        assert '"value":2,' in reads.shown("counts", "a")[0]


def test_tasks_that_go_to_another_thread_show_what_they_commit_there(tmp_path, monkeypatch) -> None:
    with asked(tmp_path, several, partitions=4, commit_interval_ms=50, num_stream_threads=2) as application:
        reads, keys = Reads(application, monkeypatch), [f"k{number}" for number in range(12)]
        reads.write(*((key, "first", 1) for key in keys))
        for key in keys:
            eventually(lambda key=key: reads.count(key) == 1)
            assert '"value":1,' in reads.shown("counts", key)[0]
        assert application.streams.remove_stream_thread() is not None
        eventually(lambda: None not in map(reads.count, keys))
        for key in keys:
            assert '"value":1,' in reads.shown("counts", key)[0]
        reads.write(*((key, "second", 2) for key in keys))
        for key in keys:
            eventually(lambda key=key: reads.count(key) == 2)
            assert '"value":2,' in reads.shown("counts", key)[0]


class Marked:
    """Stands for a store whose marks a test changes."""

    def __init__(self) -> None:
        self.marks = {0: CommitMark(), 1: CommitMark()}

    def commit_marks(self, partitions: Collection[int]) -> dict[int, CommitMark]:
        return {one: mark for one, mark in self.marks.items() if one in partitions}


#: Another value for each field of a question about a key as of the last commit.
OTHERS: dict[str, Any] = {
    "store": "other",
    "key": "other",
    "time_from": 1,
    "time_to": 1,
    "as_of": 1,
    "limit": 1,
    "after": EntryPlace(b"k"),
    "standbys": True,
    "position": {"in": {0: 1}},
    "only": (1,),
}


def test_each_part_of_a_question_counts() -> None:
    # The first are those of ranges, the others do not change the part of the answer that an instance has itself.
    without_effect = {"key_from", "key_to", "freshness", "alone"}
    assert OTHERS.keys() | without_effect == set(Question.__struct_fields__)
    question, part, store = Question("s", "k", freshness="committed"), StorePart([]), Marked()
    for field, other in OTHERS.items():
        kept = KeptAnswers()
        kept.keep(question, part, store, store.commit_marks([0]))
        assert kept.find(question) is part
        changed = msgspec.structs.replace(question, **{field: other})
        assert kept.find(changed) is None
        kept.keep(changed, StorePart([]), store, store.commit_marks([0]))
        assert kept.find(question) is part


@pytest.mark.parametrize("change", ["another commit", "gone"])
def test_an_answer_from_several_partitions_needs_each_of_them(change: str) -> None:
    for partition in (0, 1):
        question, kept, store = Question("s", "k", freshness="committed"), KeptAnswers(), Marked()
        kept.keep(question, StorePart([]), store, store.commit_marks([0, 1]))
        assert kept.find(question) is not None
        if change == "gone":
            del store.marks[partition]
        else:
            store.marks[partition] = CommitMark()
        assert kept.find(question) is None


def test_a_demanded_position_is_waited_for(reads: Reads) -> None:
    part = reads.ask("counts", "a")
    (partition,) = part.position["in"]
    for count in range(3, 6):
        offset = reads.ask("counts", "a").position["in"][partition]
        reads.write(("a", "more", count))
        position = {"in": {partition: offset + 1}}
        assert f'"value":{count},' in reads.shown("counts", "a", position=position)[0]


def test_a_large_answer_is_read_each_time(reads: Reads) -> None:
    reads.write(("large", "x" * 5_000, 40))
    eventually(lambda: reads.count("large") == 1)
    reads.ask("texts", "large")
    before = reads.pages
    reads.ask("texts", "large")
    assert reads.pages > before


def test_nothing_is_answered_any_more_once_the_client_has_ended(reads: Reads) -> None:
    reads.ask("counts", "a")
    reads.application.streams.close(60_000)
    with pytest.raises(UnreachableError):
        reads.ask("counts", "a")
