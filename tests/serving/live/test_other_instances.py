"""The page of one instance shows the restores and rates of the others, which it asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import msgspec
import pytest
from playwright.sync_api import expect

from pystreams import Streams
from pystreams.clock import ManualClock
from pystreams.runtime.health import Health
from pystreams.serving.address import Address
from pystreams.serving.live.look import (
    ClientLook,
    GroupLook,
    Look,
    MemberLook,
    RestoreLook,
    TaskLook,
    ThreadLook,
)
from pystreams.serving.live.other_instances import OtherInstances
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.peers import Peers
from pystreams.serving.watched import WatchedClient
from tests.live.support import Log, eventually
from tests.serving.http_kit import get
from tests.serving.live.conftest import PATIENCE_MS
from tests.serving.queries_kit import counting

pytestmark = pytest.mark.live

#: What the page has in place of a rate that is not known.
UNKNOWN = "\N{EN DASH}"

HEALTHY = Health(live=True, ready=True)
RESTORE = RestoreLook("counts", 30, 100)


class Seen:
    """An instance with one task, which restores. ``members``: what the group knows, thread by endpoint."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: dict[str, str] = {}
        self.looks = 0

    def application_id(self) -> str:
        return "shop"

    def health(self) -> Health:
        return HEALTHY

    def described(self) -> None:
        return None

    def look(self, *, with_group: bool) -> Look:
        self.looks += 1
        task = TaskLook("0_0", "restoring", self.looks, 0, None, None, [], [RESTORE])
        thread = ThreadLook(f"{self.name}-1", "running", 0, None, None, None, [], [task], [])
        client = ClientLook(
            self.name, None, self.looks, 0, "running", HEALTHY, self.looks, [thread], 0, [], [], {}, [], []
        )
        members = [
            MemberLook(f"{name}-1", name, "", [], [], None, endpoint)
            for name, endpoint in self.members.items()
        ]
        group = GroupLook(0, False, members, [], []) if with_group else None
        return Look(self.looks, HEALTHY, [client], [], group)


@pytest.fixture
def seen() -> list[Seen]:
    return [Seen("one"), Seen("two")]


@contextmanager
def served(seen: list[Seen], *tokens: str | None) -> Iterator[list[HttpServer]]:
    with ExitStack() as stack:
        servers = []
        for one, token in zip(seen, tokens or (None, None), strict=True):
            peers = stack.enter_context(closing(Peers(token)))
            server = HttpServer(Address("127.0.0.1", 0), one, None, peers, token=token)
            servers.append(stack.enter_context(server))
        for one in seen:
            one.members = {
                other.name: str(server.address) for other, server in zip(seen, servers, strict=True)
            }
        yield servers


def clients(server: HttpServer, **headers: str) -> dict[str, ClientLook]:
    page = get(server.address, "/state", **headers)
    return {client.client_id: client for client in msgspec.json.decode(page.text, type=Look).clients}


def test_restores_and_counts_of_others_are_in_the_state(seen):
    with served(seen) as (server, other):
        eventually(lambda: clients(server).keys() == {"one", "two"})
        before = clients(server)
        assert (before["one"].endpoint, before["two"].endpoint) == (None, str(other.address))
        assert before["two"].threads[0].tasks[0].restoring == [RESTORE]
        # Asked again and again, with the time of the other one, for its rates.
        eventually(lambda: clients(server)["two"].records > before["two"].records)
        assert clients(server)["two"].at_ms > before["two"].at_ms


def test_who_is_asked_by_another_asks_nobody(seen):
    with served(seen) as (server, _):
        eventually(lambda: len(clients(server)) == 2)
        assert clients(server, **{"Pystreams-Part": "1"}).keys() == {"one"}


def test_nobody_is_asked_while_nobody_looks(seen):
    one, two = seen
    with served(seen) as (server, _):
        eventually(lambda: len(clients(server)) == 2)
        eventually(lambda: not server._live_page._states._others._asking)
        looks = one.looks, two.looks
        # An instance asks; no person does.
        assert clients(server, **{"Pystreams-Part": "1"}).keys() == {"one"}
        assert two.looks == looks[1]


def test_an_instance_that_is_gone_is_not_shown_for_long(seen, monkeypatch):
    monkeypatch.setattr("pystreams.serving.live.other_instances._SHOWN_MS", 1_500.0)
    with served(seen) as (server, other):
        eventually(lambda: len(clients(server)) == 2)
        other.__exit__(None, None, None)
        eventually(lambda: clients(server).keys() == {"one"})


def test_an_instance_with_another_token_is_named_once(seen, caplog):
    caplog.set_level("INFO", "pystreams.serving.live.other_instances")
    tokens = "0123456789abcdef-one", "0123456789abcdef-two"
    with served(seen, *tokens) as (server, other):
        authorization = {"Authorization": f"Bearer {tokens[0]}"}

        def asked_twice() -> bool:
            assert clients(server, **authorization).keys() == {"one"}
            asked = server._live_page._states._others._asked_ms.get(str(other.address), 0)
            times.add(asked)
            return len(times - {0}) > 2

        times: set[float] = set()
        eventually(asked_twice)
        assert caplog.messages == [
            f"the live page does not show the instance at {other.address}: it answers with status 401"
        ]


class Asking:
    """The instances of a group that are asked, of which none answers, and the threads that ask."""

    def __init__(self) -> None:
        self.threads: set[threading.Thread] = set()
        self._clock = ManualClock()
        self._others = OtherInstances(self._get, self._clock)

    def _get(self, endpoint: str, path: str) -> tuple[int, bytes]:
        self.threads.add(threading.current_thread())
        raise ConnectionError(f"{endpoint} does not answer")

    def ask(self, *endpoints: str) -> None:
        """Ask them, and wait until that is over."""
        members = [MemberLook(name, name, "", [], [], None, name) for name in endpoints]
        self._clock.advance_ms(1_000)
        self._others.clients(Look(0, HEALTHY, [], [], GroupLook(0, False, members, [], [])))
        eventually(lambda: not self._others._asking)


def test_those_who_ask_are_no_new_threads_each_second():
    asking = Asking()
    for _ in range(20):
        asking.ask("one:1", "two:2")
    assert len(asking.threads) <= 2


def test_threads_that_have_nobody_to_ask_end_and_others_begin(monkeypatch):
    monkeypatch.setattr("pystreams.serving.live.other_instances._IDLE_S", 0.01)
    asking = Asking()
    for number in range(1, 4):
        asking.ask("one:1")
        assert len(asking.threads) == number
        eventually(lambda: not any(thread.is_alive() for thread in asking.threads))


def test_an_instance_that_was_gone_and_is_silent_again_is_named_again(caplog):
    caplog.set_level("INFO", "pystreams.serving.live.other_instances")
    asking = Asking()
    for endpoints in (["one:1"], ["one:1"], [], ["one:1"]):
        asking.ask(*endpoints)
    message = "the live page does not show the instance at one:1: one:1 does not answer"
    assert caplog.messages == [message] * 2


class Member:
    """An instance of a real group."""

    def __init__(self, log: Log, name: str, stack: ExitStack) -> None:
        app = log.app("counting", state_dir=log.path / name, commit_interval_ms=100)
        counting(app)
        self.streams = Streams(app, broker=log.broker_with())
        peers = stack.enter_context(closing(Peers()))
        watched = WatchedClient(self.streams, None)
        server = stack.enter_context(HttpServer(Address("127.0.0.1", 0), watched, None, peers))
        self.address = server.address
        self.streams.set_application_server(str(self.address))
        stack.callback(self.streams.close, 60_000)
        self.streams.start()


@pytest.mark.slow
def test_the_page_has_a_rate_for_each_task_of_all_instances(log, visit):
    log.create("in", partitions=2)
    with ExitStack() as stack:
        one, other = (Member(log, name, stack) for name in ("one", "other"))
        page = visit(one.address)
        card = page.locator("#instances article").filter(has_text=str(other.address))
        expect(card).to_be_visible(timeout=PATIENCE_MS)
        rows = page.locator("#tasks tbody tr")

        def all_move() -> bool:
            for partition in (0, 1):
                log.write("in", [(str(n), 1, n) for n in range(50)], partition=partition)
            page.wait_for_timeout(250)
            rates = rows.evaluate_all("rows => rows.map(row => row.children[3].textContent)")
            return len(rates) == 2 and all(rate not in (UNKNOWN, "0") for rate in rates)

        eventually(all_move)
        expect(rows.locator(".where", has_text=str(other.address))).to_have_count(1)
        expect(page.locator("#tasks")).not_to_contain_text("elsewhere")
