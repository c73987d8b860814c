"""Instances of a real group know from it whom to ask for a key, and go on when one of them has ended, or does not
answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from pystreams import Streams
from pystreams.serving.address import Address
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.asking import Instance
from pystreams.serving.stores.local import LocalStores
from pystreams.serving.stores.peers import Peers
from pystreams.serving.watched import WatchedClient
from tests.broker.following import LONG_SESSION_MS
from tests.live.support import Log, eventually
from tests.serving.http_kit import Page, get

pytestmark = [pytest.mark.live, pytest.mark.slow]

PARTITIONS = 4
KEYS = [str(n) for n in range(40)]
LAG = "pystreams-standby-lag"


class Member:
    """An instance with an HTTP server of its own, whose endpoint the group knows."""

    def __init__(self, log: Log, folder: Path, stack: ExitStack, **settings: Any) -> None:
        app = log.app("counting", state_dir=folder, **settings)
        app.stream("in", key=str, value=int).group_by_key().count(name="counts")
        # No session ends, or tasks would move while a busy machine delays a member.
        self.streams = Streams(app, broker=log.broker_with(session_timeout_ms=LONG_SESSION_MS))
        peers = stack.enter_context(closing(Peers()))
        stores = Instance(LocalStores(self.streams), peers.ask)
        server = HttpServer(Address("127.0.0.1", 0), WatchedClient(self.streams, None), stores)
        #: Closed, the instance goes on, and nobody can ask it.
        self.http = stack.enter_context(ExitStack())
        self.address = self.http.enter_context(server).address
        self.streams.set_application_server(str(self.address))
        stack.callback(self.streams.close, 60_000)
        self.streams.start()

    def has(self) -> list[int]:
        return get(self.address, "/stores/counts").json["here"]

    def follows(self) -> list[int]:
        """The partitions of its standbys that lack nothing."""
        return [one.task_id.partition for one in self.streams.progress().standbys if one.lag == 0]

    def ask(self, key: str, query: str) -> Page:
        return get(self.address, f"/stores/counts/keys/{key}?{query}")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path)
    log.create("in", partitions=PARTITIONS)
    yield log
    log.close()


def test_any_member_answers_for_any_key_also_after_another_has_ended(log, tmp_path):
    for number, key in enumerate(KEYS):
        log.write("in", [(key, 1, number)], partition=number % PARTITIONS)
    with ExitStack() as stack:
        members = [Member(log, tmp_path / f"state-{number}", stack) for number in range(2)]
        eventually(lambda: [len(member.has()) for member in members] == [2, 2])

        def all_answer(*asked: Member) -> bool:
            pages = [get(m.address, f"/stores/counts/keys/{key}") for m in asked for key in KEYS]
            assert {page.status for page in pages} <= {200, 503, 404}
            return all(page.status == 200 and page.json["value"] == 1 for page in pages)

        eventually(lambda: all_answer(*members))
        for member in members:
            entries = get(member.address, "/stores/counts/entries?freshness=committed").json["entries"]
            assert [entry["key"] for entry in entries] == sorted(KEYS)
        members[1].streams.close(60_000)
        eventually(lambda: len(members[0].has()) == PARTITIONS)
        eventually(lambda: all_answer(members[0]))


def test_a_standby_answers_for_an_owner_that_nobody_can_ask_and_says_what_it_lacks(log, tmp_path):
    for number, key in enumerate(KEYS):
        log.write("in", [(key, 1, number)], partition=number % PARTITIONS)
    with ExitStack() as stack:
        members = [
            Member(log, tmp_path / f"state-{number}", stack, num_standby_replicas=1) for number in range(3)
        ]

        def placed() -> bool:
            """Whether all have a part, and each partition runs in one instance, and another one follows it."""
            running, following = [m.has() for m in members], [m.follows() for m in members]
            return (
                all(running)
                and sorted(chain(*running)) == sorted(chain(*following)) == list(range(PARTITIONS))
                and all(set(one).isdisjoint(m.has()) for one, m in zip(following, members, strict=True))
            )

        def members_for(partition: int) -> list[Member]:
            """The owner of a partition, its standby, and the instance that has nothing of it."""
            return sorted(members, key=lambda m: (partition not in m.has(), partition not in m.follows()))

        def says(page: Page) -> tuple[int, object, str | None]:
            found = page.json
            return page.status, found.get("code", found.get("value")), page.headers.get(LAG)

        def all_keys(member: Member) -> list[str]:
            page = get(member.address, "/stores/counts/entries?standbys=true")
            return [entry["key"] for entry in page.json["entries"]]

        eventually(placed)
        eventually(
            lambda: all(m.ask(key, "freshness=committed").status == 200 for m in members for key in KEYS)
        )
        # Standbys are behind for a moment.
        eventually(lambda: all(set(all_keys(member)) == set(KEYS) for member in members))
        owner, standby, other = members_for(0)
        key = KEYS[0]
        # The standby of the instance itself is nearer than the owner.
        assert says(standby.ask(key, "standbys=true")) == (200, 1, "0")
        # Where the owner answers, its standbys keep silent.
        assert [all_keys(member) for member in members] == [sorted(KEYS)] * 3
        assert says(other.ask(key, "standbys=true")) == (200, 1, None)

        owner.http.close()
        for member in (standby, other):
            assert says(member.ask(key, "freshness=committed")) == (503, "unreachable", None)
            assert says(member.ask(key, "standbys=true")) == (200, 1, "0")
            assert all_keys(member) == sorted(KEYS)
