"""A page ends early if it is too large, or if its time is over; the next one goes on where it ended. Its time begins
when it is read, not while its question waits for the stream thread."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from pystreams import App, SessionWindows, TimeWindows
from pystreams.clock import ManualClock
from pystreams.serving.address import Address
from pystreams.serving.query_errors import TooSlowError
from pystreams.serving.server import HttpServer
from pystreams.serving.stores import parts as parts_module
from pystreams.serving.stores.local import READ_MS, LocalStores
from pystreams.serving.stores.parts import Entry, StorePart, merged
from pystreams.serving.stores.questions import LIMIT_MAX, EntryPlace, Question
from pystreams.serving.watched import WatchedClient
from tests.live.support import caught_up, eventually
from tests.serving.queries_kit import Asked, asked

pytestmark = pytest.mark.live

STUCK = -1

KEYS = [f"k{number:02}" for number in range(40)]
WINDOWS = 1_000


def counted(app: App) -> None:
    numbers = app.stream("in", key=str, value=int).group_by_key()
    numbers.count(name="counts")
    numbers.windowed_by(TimeWindows.tumbling(10, grace=1_000_000)).count(name="windows")


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """With some keys in two partitions, and one with many windows."""
    with asked(tmp_path_factory.mktemp("counted"), counted) as application:
        records = [(key, 1, 0) for key in KEYS] + [(KEYS[0], 1, 10 * number) for number in range(WINDOWS)]
        application.log.write("in", records)
        caught_up(application.streams)
        yield application


class HurryingClock(ManualClock):
    """With each look at it, a time is over."""

    def __init__(self, look_ms: int) -> None:
        super().__init__()
        self._look_ms = look_ms

    def monotonic_ms(self) -> float:
        self.advance_ms(self._look_ms)
        return super().monotonic_ms()


@contextmanager
def in_a_hurry(application: Asked, look_ms: int) -> Iterator[Asked]:
    """The same application, the time of whose pages is over after a few looks at the clock."""
    stores = LocalStores(application.streams, HurryingClock(look_ms))
    with HttpServer(Address("127.0.0.1", 0), WatchedClient(application.streams, None), stores) as server:
        yield Asked(application.log, application.streams, server)


def test_a_page_that_is_too_large_ends_and_the_next_ones_have_the_rest(
    application: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 500
    monkeypatch.setattr(parts_module, "PAGE_BYTES_MAX", most)
    pages = list(application.pages(f"/stores/counts/entries?limit={LIMIT_MAX}"))
    assert [entry["key"] for page in pages for entry in page] == KEYS
    assert len(pages) > 2
    for page in pages:
        sizes = [len(json.dumps(entry, separators=(",", ":"))) for entry in page]
        assert sum(sizes[:-1]) <= most, "whatever the number of partitions"


def test_a_page_whose_time_is_over_ends_and_the_next_ones_have_the_rest(application: Asked) -> None:
    with in_a_hurry(application, READ_MS // 3) as hurried:
        pages = list(hurried.pages(f"/stores/windows/keys/{KEYS[0]}?limit={LIMIT_MAX}"))
    assert [entry["start"] for page in pages for entry in page] == [10 * number for number in range(WINDOWS)]
    assert len(pages) > 1
    assert all(pages)


def test_if_nothing_is_found_in_the_time_of_a_page_the_answer_is_that_it_takes_too_long(
    application: Asked,
) -> None:
    # All entries have to be read before the first one in order is known.
    whole_range = "/stores/windows/entries?limit=1"
    assert application.get(whole_range).status == 200
    with in_a_hurry(application, READ_MS // 3) as hurried:
        page = hurried.get(whole_range)
        assert (page.status, page.json["code"]) == (503, "too-slow")
        assert "narrower range of keys or times" in page.json["hint"]
    with in_a_hurry(application, READ_MS) as hurried:
        assert hurried.key("windows", KEYS[0]).json["code"] == "too-slow"


def test_no_page_is_made_of_entries_before_which_an_instance_may_have_others() -> None:
    found = StorePart([Entry(EntryPlace(b"k1"), b"{}")], more=True, read=[0], partitions=2)
    nothing_yet = StorePart(more=True, read=[1], partitions=2)
    with pytest.raises(TooSlowError, match="no entry of store counts was found in the time"):
        merged(Question("counts"), [found, nothing_yet])


def test_a_page_is_whole_however_long_its_question_has_waited(tmp_path):
    arrived, free = threading.Event(), threading.Event()

    def step(value: int) -> int:
        if value == STUCK:
            arrived.set()
            assert free.wait(300)
        return value

    def visits(app: App) -> None:
        numbers = app.stream("in", key=str, value=int).map_values(step, value=int)
        numbers.group_by_key().windowed_by(SessionWindows.of(5, grace=1_000)).count(name="visits")

    with asked(tmp_path, visits, partitions=1) as application, ThreadPoolExecutor() as pool:
        try:
            application.log.write("in", [("a", 1, 1), ("b", 1, 2)])
            caught_up(application.streams)
            application.log.write("in", [("a", STUCK, 3)])
            assert arrived.wait(120)
            clock = ManualClock()
            stores = LocalStores(application.streams, clock)
            part = pool.submit(lambda: asyncio.run(stores.ask(Question("visits"))))
            (thread,) = application.streams._threads
            eventually(lambda: thread._requests.calls.waiting)
            clock.advance_ms(2 * READ_MS)
        finally:
            free.set()
        assert len(part.result(120).entries) == 2
