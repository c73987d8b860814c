"""``/lag`` is the lag of the application in all its processes, as ``pystreams lag`` has it. It comes soon, however
often it is asked for, and where it is not known it is not 0."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from pystreams import Streams
from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.group.application_status import ApplicationStatus, InputStatus
from pystreams.runtime.health import Health
from pystreams.serving.address import Address
from pystreams.serving.group_status import GroupStatus
from pystreams.serving.lag import KEPT_MS, Lag, lag_now
from pystreams.serving.server import HttpServer
from pystreams.serving.watched import WatchedClient
from tests.live.support import Log, caught_up, chosen_log, eventually, freeze
from tests.serving.http_kit import get
from tests.serving.test_run_http import log as log_in_a_folder
from tests.serving.test_run_http import start

pytestmark = pytest.mark.live

__all__ = ["log_in_a_folder", "start"]

RENAMED = "renamed-counts-repartition"


@pytest.fixture
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    with chosen_log(request, tmp_path) as log:
        log.create("in", partitions=2)
        yield log


def renamed(log: Log, process: str = "one") -> Streams:
    """An application with a repartition topic."""
    app = log.app("renamed", state_dir=log.path / process, commit_interval_ms=50)
    by_key = app.stream("in", key=str, value=int).select_key(lambda key, _: key + "!", key=str)
    by_key.group_by_key().count(name="counts")
    return Streams(app, broker=log.broker)


def served(streams: Streams) -> HttpServer:
    return HttpServer(Address("127.0.0.1", 0), WatchedClient(streams, None))


@pytest.mark.both_logs
def test_it_is_that_of_all_processes_whichever_is_asked(log):
    one, other = renamed(log), renamed(log, "other")
    with closing(one), closing(other), served(one) as first, served(other) as second:
        for streams in (one, other):
            streams.start()
        for partition in (0, 1):
            log.write("in", [("a", 1, n) for n in range(5)], partition=partition)
        for streams in (one, other):
            caught_up(streams)
        eventually(lambda: get(first.address, "/lag").json == {**NONE, "at_ms": at_ms(first)})
        for streams in (one, other):
            streams.pause()
        for partition in (0, 1):
            log.write("in", [("a", 1, n) for n in range(7)], partition=partition)
        for server in (first, second):
            page = eventually(lambda at=server: (seen := get(at.address, "/lag")).json["lag"] and seen)
            assert (page.status, page.json["lag"], page.json["topics"]["in"]) == (200, 14, 14)
            assert page.headers["cache-control"] == "no-store"


NONE = {"lag": 0, "topics": {"in": 0, RENAMED: 0}}


def at_ms(server: HttpServer) -> int:
    return get(server.address, "/lag").json["at_ms"]


@pytest.mark.both_logs
def test_what_waits_in_a_repartition_topic_counts(log):
    streams = renamed(log)
    with closing(streams), served(streams) as server:
        streams.start()
        log.write("in", [("a", 1, 1)])
        caught_up(streams)
        streams.pause()
        log.write(RENAMED, [("b!", 1, n) for n in range(3)])
        eventually(lambda: get(server.address, "/lag").json["topics"] == {"in": 0, RENAMED: 3})


def test_before_the_start_it_is_not_known_and_not_0(log):
    with served(renamed(log)) as server:
        page = get(server.address, "/lag")
        assert page.status == 503
        assert page.json == {
            "code": "unknown",
            "error": "the lag is not known now",
            "why": "the log has not answered yet",
            "hint": "ask again in a moment",
        }
        assert page.headers["retry-after"] == "1"


class AskedLog:
    """A log that answers when it is let. ``lag`` is what waits in it."""

    def __init__(self) -> None:
        self.lag, self.asked = 0, 0
        self.error: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()
        self.clock = ManualClock()
        self.group = GroupStatus(self.ask, self.clock)

    def ask(self) -> ApplicationStatus:
        self.asked += 1
        self.answers.wait(240)
        if self.error is not None:
            raise self.error
        where, task = TopicPartition("in", 0), TaskId(0, 0)
        waits = InputStatus(where, task, None, 0, self.lag, self.lag)
        return ApplicationStatus("shop", False, (), (waits,), (task,))

    def now(self) -> Lag:
        return lag_now(self.group, self.clock, 0.1 if not self.answers.is_set() else 60)


@pytest.fixture
def asked() -> Iterator[AskedLog]:
    asked = AskedLog()
    yield asked
    asked.answers.set()


def test_the_log_is_asked_every_three_seconds_at_most(asked):
    asked.lag = 5
    assert {asked.now().lag for _ in range(100)} == {5}
    assert asked.asked == 1
    asked.clock.advance_ms(2_999)
    asked.lag = 6
    assert asked.now().lag == 5
    asked.clock.advance_ms(1)
    assert asked.now().lag == 6
    assert asked.asked == 2


def test_a_log_that_does_not_answer_leaves_the_last_answer_for_half_a_minute(asked):
    asked.lag = 5
    assert asked.now().lag == 5
    asked.answers.clear()
    asked.clock.advance_ms(KEPT_MS)
    assert asked.now().lag == 5
    asked.clock.advance_ms(1)
    assert asked.now() == Lag(None, why="the log has not answered for 30 s")
    asked.lag = 9
    asked.answers.set()
    assert asked.now().lag == 9


def test_why_the_log_cannot_be_asked_is_said(asked):
    asked.error = BrokerUnavailableError("no broker answers")
    assert asked.now() == Lag(None, why="no broker answers")
    asked.error = RuntimeError("the log is closed")
    asked.clock.advance_ms(3_000)
    assert asked.now() == Lag(None, why="RuntimeError('the log is closed')")
    asked.error = None
    asked.clock.advance_ms(3_000)
    assert asked.now().lag == 0


class Waiting:
    """An application whose log does not answer."""

    def __init__(self, asked: AskedLog) -> None:
        self.asked = asked

    def application_id(self) -> str:
        return "shop"

    def health(self) -> Health:
        return Health(live=True, ready=True)

    def samples(self):
        return {}

    def lag(self) -> Lag:
        return lag_now(self.asked.group, self.asked.clock, 240)


def test_those_who_wait_for_a_silent_log_hold_up_nobody(asked):
    asked.answers.clear()
    with (
        HttpServer(Address("127.0.0.1", 0), Waiting(asked)) as server,
        ThreadPoolExecutor(100) as pool,
    ):
        waiting = [pool.submit(get, server.address, "/lag") for _ in range(100)]
        # All but eight get an answer at once.
        eventually(lambda: sum(one.done() for one in waiting) == 92)
        pages = [one.result() for one in waiting if one.done()]
        assert {page.status for page in pages} == {503}
        assert {page.json["why"] for page in pages} == {"8 others wait for it"}
        assert get(server.address, "/live").status == 200
        asked.answers.set()
        assert sorted(one.result().status for one in waiting) == [200] * 8 + [503] * 92
    assert asked.asked == 1


HANGING = """
import threading
from pystreams import App

app = App("copying", poll_ms=10)
app.stream("in", key=str, value=int).peek(lambda value: value < 0 and threading.Event().wait()).to("out")
"""


@pytest.mark.slow
def test_one_address_answers_for_all_workers_also_while_one_of_them_hangs(log_in_a_folder, start, tmp_path):
    (tmp_path / "copying.py").write_text(HANGING, encoding="utf-8")
    run = start("--workers", "2", "--http", "127.0.0.1:0")
    assert get(run.address, "/lag").status in {200, 503}
    eventually(lambda: get(run.address, "/ready").status == 200)
    for partition in range(4):
        log_in_a_folder.write("in", [("a", 1, 1)], partition=partition)
    eventually(lambda: get(run.address, "/lag").json.get("lag") == 0)
    for partition in range(4):
        log_in_a_folder.write("in", [("a", -1, n) for n in range(5)], partition=partition)
    # Both workers hang within the function, and their logs have 20 more.
    page = eventually(lambda: (seen := get(run.address, "/lag").json).get("lag") == 20 and seen)
    assert page["topics"] == {"in": 20}
    freeze(run.all_there(2)[1])
    answers = [get(run.address, "/lag") for _ in range(3)]
    known = [answer.json["lag"] for answer in answers if answer.status == 200]
    assert known
    assert set(known) == {20}
