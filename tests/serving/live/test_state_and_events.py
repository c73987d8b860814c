"""The state is the same as JSON, as events and for all processes; and nobody is asked for it while nobody looks."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import msgspec
import pytest

from pystreams import Streams
from pystreams.clock import SystemClock
from pystreams.runtime.health import Health
from pystreams.serving.address import Address
from pystreams.serving.live import events as events_module
from pystreams.serving.live.events import STREAMS_MAX, EventStreams, States
from pystreams.serving.live.look import Look
from pystreams.serving.live.routes import LivePage
from pystreams.serving.pages import pages
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.peers import PART_HEADER
from pystreams.serving.watched import WatchedClient
from tests.live.support import Log, caught_up, eventually
from tests.serving.asyncio_kit import run_apart
from tests.serving.http_kit import get
from tests.serving.test_mounted_app import web_server

pytestmark = pytest.mark.live


class Counted:
    """An application that counts how often somebody looks at it, and how often for its group, too."""

    def __init__(self) -> None:
        self.looks, self.groups = 0, 0

    def application_id(self) -> str:
        return "shop"

    def health(self) -> Health:
        return Health(live=True, ready=True)

    def samples(self) -> dict[str, Any]:
        return {}

    def described(self) -> None:
        return None

    def look(self, *, with_group: bool) -> Look:
        self.looks += 1
        self.groups += with_group
        return Look(self.looks, self.health(), [], [], None)


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def server(counted: Counted) -> Iterator[HttpServer]:
    with HttpServer(Address.parse("127.0.0.1:0"), counted) as server:
        yield server


def test_streams_that_begin_at_the_same_moment_are_no_more_than_there_may_be(counted: Counted) -> None:
    async def begun_at_once() -> bytes | None:
        """What the last one gets after its first event."""
        streams = EventStreams(States(counted, SystemClock()), SystemClock())
        all_of_them = [streams.events() for _ in range(STREAMS_MAX + 1)]
        assert not streams.is_full
        for stream in all_of_them:
            await anext(stream)
        assert streams.is_full
        return await anext(all_of_them[-1], None)

    assert run_apart(begun_at_once()) is None


def test_before_the_log_is_open_there_is_no_topology(server: HttpServer) -> None:
    page = get(server.address, "/topology")
    assert (page.status, page.text) == (503, "the application is starting\n")


class Stream:
    """An open stream of events."""

    def __init__(self, address: Address) -> None:
        self._connection = http.client.HTTPConnection(address.host, address.port, timeout=120)
        self._connection.request("GET", "/events", headers={"Accept": "text/event-stream"})
        self.answer = self._connection.getresponse()

    def event(self) -> Any:
        """The next state; None at the end of the stream."""
        for line in self.answer:
            if line.startswith(b"data: "):
                return msgspec.json.decode(line.removeprefix(b"data: "))
        return None

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


@pytest.fixture
def listen(server: HttpServer) -> Iterator[Any]:
    with ExitStack() as opened:
        yield lambda: opened.enter_context(closing(Stream(server.address)))


def test_events_follow_each_other_and_have_the_state(server, listen):
    stream = listen()
    assert stream.answer.headers["content-type"].startswith("text/event-stream")
    first, second = stream.event(), stream.event()
    assert second["at_ms"] > first["at_ms"]
    assert first.keys() == get(server.address, "/state").json.keys()


def test_nobody_looks_at_the_application_while_nobody_looks_at_the_page(counted, server, listen):
    stream = listen()
    assert stream.event() is not None
    stream.close()
    eventually(lambda: server._live_page.events._open == 0)
    looks = counted.looks
    # That nothing happens cannot be waited for: with an open stream, three events would have come within this time.
    time.sleep(3 * events_module.EVENT_S)
    assert counted.looks == looks


def test_those_who_look_at_the_same_time_share_a_look(counted, server):
    get(server.address, "/state")
    before = counted.looks
    began = time.monotonic()
    readers = [threading.Thread(target=get, args=(server.address, "/state")) for _ in range(20)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    seconds = time.monotonic() - began
    assert counted.looks - before <= 1 + seconds / (events_module.EVENT_S / 2)


def test_all_open_pages_together_cost_one_look_an_event(counted, listen):
    streams = [listen() for _ in range(STREAMS_MAX)]
    # Each has begun.
    assert all(stream.event() for stream in streams)
    before, began = counted.looks, time.monotonic()
    for _ in range(3):
        assert all(stream.event() for stream in streams)
    seconds = time.monotonic() - began
    assert counted.looks - before <= 1 + seconds / (events_module.EVENT_S / 2)


def test_an_instance_that_another_one_asks_does_not_ask_the_log_about_the_group(counted, server):
    assert get(server.address, "/state", **{PART_HEADER: "1"}).status == 200
    assert (counted.looks, counted.groups) == (1, 0)
    assert get(server.address, "/state").status == 200
    assert counted.groups == 1


def test_one_stream_too_many_is_refused_and_costs_no_other_page(server, listen):
    streams = [listen() for _ in range(STREAMS_MAX)]
    assert all(stream.event() for stream in streams)
    refused = get(server.address, "/events")
    assert refused.status == 503
    assert refused.headers["retry-after"]
    assert get(server.address, "/ready").status == 200
    streams[0].close()
    eventually(lambda: not server._live_page.events.is_full)
    assert listen().event() is not None


def test_streams_end_after_their_time(counted):
    live_page = LivePage(counted, with_stores=False, stream_s=0.5)
    with (
        web_server(pages(counted, None, ["*"], live_page=live_page)) as address,
        closing(Stream(address)) as short,
    ):
        assert short.event() is not None
        assert short.event() is None


def test_streams_end_with_the_server(counted):
    with HttpServer(Address.parse("127.0.0.1:0"), counted) as server:
        held = Stream(server.address)
        assert held.event() is not None
    with closing(held):
        while held.event() is not None:
            """What was under way."""


def test_streams_outlive_the_limit_of_other_connections(monkeypatch, server, listen):
    monkeypatch.setattr("pystreams.serving.connections.CONNECTION_S", 1.0)
    stream = listen()
    began = time.monotonic()
    while time.monotonic() - began < 3.0:
        assert stream.event() is not None


def test_the_page_may_load_from_this_server_alone_and_runs_no_script_of_its_own(server):
    page = get(server.address, "/", Accept="text/html")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http://" not in page.text.replace("http://www.w3.org/", "")
    assert "<script>" not in page.text
    assert " style=" not in page.text
    assert page.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/static/../routes.py", "/static/%2e%2e/routes.py", "/static//etc/passwd", "/static/"]
)
def test_only_files_of_the_page_are_served(server, path):
    assert get(server.address, path).status == 404
    assert get(server.address, "/static/page.js").status == 200


def test_programs_get_a_list_of_the_pages_with_the_address_of_the_live_page(server):
    assert get(server.address, "/").text.splitlines() == [
        f"the live page, for a browser: http://{server.address}/",
        "/metrics",
        "/live",
        "/ready",
        "/lag",
        "/threads",
        "/state",
        "/events",
        "/topology",
    ]


def copying(log: Log, process: str) -> Streams:
    app = log.app("copying", state_dir=log.path / process, commit_interval_ms=100)
    app.stream("in", key=str, value=int).to("out")
    return Streams(app, broker=log.broker)


def test_a_process_knows_which_tasks_the_others_have(log):
    log.create("in", "out", partitions=2)
    with ExitStack() as stack:
        clients = [stack.enter_context(closing(copying(log, process))) for process in ("one", "two")]
        for streams in clients:
            streams.start()
        for streams in clients:
            caught_up(streams)
        watched = WatchedClient(clients[0], None)

        def one_each() -> Look | None:
            look = watched.look(with_group=True)
            own = {task.task for client in look.clients for thread in client.threads for task in thread.tasks}
            all_known = (
                {task for member in look.group.members for task in member.tasks} if look.group else set()
            )
            return look if len(own) == 1 and len(all_known - own) == 1 else None

        look = eventually(one_each)
    assert look.group.tasks == ["0_0", "0_1"]
    assert {(one.topic, one.partition, one.lag) for one in look.group.inputs} == {("in", 0, 0), ("in", 1, 0)}


def test_a_look_goes_through_the_channel_of_a_worker_as_it_is(log):
    log.create("in", "out", partitions=2)
    with closing(copying(log, "one")) as streams:
        streams.start()
        log.write("in", [("a", 1, 5)])
        caught_up(streams)
        watched = WatchedClient(streams, None)
        described = watched.described()
        assert described is not None
        assert "copying" in described.application_id
        assert described.picture.startswith("<svg")
        client = watched.look(with_group=False).clients[0]
    assert msgspec.json.decode(msgspec.json.encode(client), type=type(client)) == client
    assert client.records == 1


def test_the_hits_of_each_cache_are_exact_at_the_level_debug_and_otherwise_known_of_aggregations_alone(log):
    log.create("in", "out")
    log.write("in", [(str(n % 5), 1, n) for n in range(100)])
    seen = {}
    for level in ("INFO", "DEBUG"):
        app = log.app(f"joined-{level}", metrics_recording_level=level)
        numbers = app.stream("in", key=str, value=int)
        counts = numbers.group_by_key().count(name="read-by-others")
        numbers.join(counts, lambda one, count: one + count, value=int).to("out")
        numbers.group_by_key().count(name="alone")
        with closing(Streams(app, broker=log.broker)) as streams:
            streams.start()
            caught_up(streams)
            look = WatchedClient(streams, None).look(with_group=False).clients[0]
        seen[level] = {one.store: (one.reads, one.hits) for one in look.stores}
    # The first of each key finds nothing; the join reads what the aggregation has just written.
    assert seen["INFO"] == {"alone": (100, 95), "read-by-others": (None, None)}
    assert seen["DEBUG"] == {"alone": (100, 95), "read-by-others": (200, 195)}
