"""Instances of a real group know from it whom to ask for a key, and go on when one of them has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from pystreams import Streams
from pystreams.serving.address import Address
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.asking import Instance
from pystreams.serving.stores.local import LocalStores
from pystreams.serving.stores.peers import Peers
from pystreams.serving.watched import WatchedClient
from tests.live.support import Log, eventually
from tests.serving.http_kit import get

pytestmark = [pytest.mark.live, pytest.mark.slow]

PARTITIONS = 4
KEYS = [str(n) for n in range(40)]


class Member:
    """An instance with an HTTP server of its own, whose endpoint the group knows."""

    def __init__(self, log: Log, folder: Path, stack: ExitStack) -> None:
        app = log.app("counting", state_dir=folder)
        app.stream("in", key=str, value=int).group_by_key().count(name="counts")
        self.streams = Streams(app, broker=log.broker_with())
        peers = stack.enter_context(closing(Peers()))
        stores = Instance(LocalStores(self.streams), peers.ask)
        server = HttpServer(Address("127.0.0.1", 0), WatchedClient(self.streams, None), stores)
        self.address = stack.enter_context(server).address
        self.streams.set_application_server(str(self.address))
        stack.callback(self.streams.close, 60_000)
        self.streams.start()

    def has(self) -> list[int]:
        return get(self.address, "/stores/counts").json["here"]


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
