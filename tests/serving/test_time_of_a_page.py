"""The time in which a page is read begins when it is read, not while its question waits for the stream thread."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pystreams import App, SessionWindows
from pystreams.clock import ManualClock
from pystreams.serving.stores.local import READ_MS, LocalStores
from pystreams.serving.stores.questions import Question
from tests.live.support import caught_up, eventually
from tests.serving.queries_kit import asked

pytestmark = pytest.mark.live

STUCK = -1


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
