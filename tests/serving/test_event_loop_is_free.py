"""However long a query of a store waits, the server goes on to answer others: probes above all."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pystreams import App, Serde
from pystreams.serving.stores import local as local_module
from tests.live.support import caught_up, eventually
from tests.serving.http_kit import Page
from tests.serving.queries_kit import Asked, asked

pytestmark = pytest.mark.live

#: A probe is answered in this time on a busy machine, too.
PROBE_S = 30


def probed_meanwhile(
    application: Asked, ask: Callable[[], Page], is_waiting: Callable[[], object], free: Callable[[], object]
) -> Page:
    """What ``ask`` gets, after the server has answered a probe while it waits."""
    with ThreadPoolExecutor() as pool:
        asked_for = pool.submit(ask)
        try:
            eventually(is_waiting, timeout_s=PROBE_S)
            assert pool.submit(application.get, "/live").result(PROBE_S).status == 200
            assert not asked_for.done()
        finally:
            free()
        return asked_for.result(120)


def test_a_serde_that_waits_for_something_holds_up_its_own_query_alone(tmp_path: Path) -> None:
    waits, free, arrived = threading.Event(), threading.Event(), threading.Event()

    def written(key: int) -> bytes:
        if waits.is_set():
            arrived.set()
            assert free.wait(300)
        return str(key).encode()

    serde = Serde.of(written, int)

    def latest(app: App) -> None:
        app.table("in", key=serde, value=int, name="latest")

    with asked(tmp_path, latest) as application:
        application.log.write("in", [(1, 1, 5)], key=serde)
        caught_up(application.streams)
        waits.set()
        page = probed_meanwhile(
            application,
            lambda: application.key("latest", "1", "?freshness=committed"),
            arrived.is_set,
            free.set,
        )
        assert page.json == {"key": 1, "value": 1, "timestamp": 5}


def test_a_stream_thread_that_is_stuck_is_distinguished_from_a_slow_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_module, "WAIT_MS", 500.0)
    free, arrived = threading.Event(), threading.Event()

    def step(value: int) -> int:
        if value == 2:
            arrived.set()
            assert free.wait(300)
        return value

    def latest(app: App) -> None:
        app.stream("in", key=str, value=int).map_values(step, value=int).to_table(name="latest")

    with asked(tmp_path, latest, partitions=1) as application:
        application.log.write("in", [("a", 1, 5)])
        caught_up(application.streams)
        eventually(lambda: application.key("latest", "a").status == 200)
        try:
            application.log.write("in", [("a", 2, 6)])
            assert arrived.wait(120)
            page = application.key("latest", "a")
        finally:
            free.set()
        assert (page.status, page.json["code"]) == (503, "unreachable")
        assert page.json["why"] == "a stream thread was busy all the while"


def test_a_commit_that_is_being_written_holds_up_the_queries_of_its_task_alone(tmp_path: Path) -> None:
    def latest(app: App) -> None:
        app.table("in", key=str, value=int, name="latest")

    with asked(tmp_path, latest, partitions=1) as application:
        application.log.write("in", [("a", 1, 5)])
        caught_up(application.streams)
        eventually(lambda: application.key("latest", "a", "?freshness=committed").status == 200)
        (thread,) = application.streams._threads
        (task,) = thread.tasks.running
        committed = task.state.committed_stores
        with contextlib.ExitStack() as commit:
            # The second commit finds that nobody has read what the first one published, and so publishes nothing.
            for _ in range(2):
                with committed.changing():
                    pass
            commit.enter_context(committed.changing())
            page = probed_meanwhile(
                application,
                lambda: application.key("latest", "a", "?freshness=committed"),
                lambda: committed._readers,
                commit.close,
            )
        assert page.json == {"key": "a", "value": 1, "timestamp": 5}
