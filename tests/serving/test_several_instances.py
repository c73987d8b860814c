"""Any instance of an application answers for any key: it asks the one that has it, which asks nobody else."""

from __future__ import annotations

from contextlib import ExitStack, closing

import msgspec
import pytest

from pystreams.serving.address import Address
from pystreams.serving.query_errors import UnreachableError
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.asking import Instance
from pystreams.serving.stores.parts import Entry, StoreInfo, StorePart
from pystreams.serving.stores.peers import Peers
from pystreams.serving.stores.questions import EntryPlace
from tests.serving.http_kit import get
from tests.serving.test_who_may_read import TOKEN, Well

KEYS = [f"k{n:02}" for n in range(20)]


class Share:
    """The stores of an instance that has one of two partitions: the even or the odd keys. It knows where the other one
    is."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.other = ""
        self.refusing = False
        self.questions = []

    async def stores(self):
        return [StoreInfo("counts", "key_value", "str", "int", 2, [self.partition])]

    def ask_at_once(self, question):
        return None

    async def ask(self, question):
        self.questions.append(question)
        if self.refusing:
            raise UnreachableError("the tasks move", why="a rebalance")
        mine = [key for number, key in enumerate(KEYS) if number % 2 == self.partition]
        after = "" if question.after is None else question.after.key.decode()
        wanted = [key for key in mine if key > after and question.key in (None, key)]
        entries = [
            Entry(EntryPlace(key.encode()), msgspec.json.encode({"key": key, "value": self.partition}))
            for key in wanted
        ]
        number = 1 - self.partition
        return StorePart(
            entries[: question.limit],
            len(entries) > question.limit,
            [self.partition],
            2,
            KEYS.index(question.key) % 2 if question.key in KEYS else None,
            {number: "is assigned to another one"},
            {number: self.other} if self.other else {},
            {},
            question.key is not None,
        )


class Two:
    """Two instances, each at an address of its own."""

    def __init__(self, stack: ExitStack, tokens=(None, None)) -> None:
        self.shares = [Share(0), Share(1)]
        self.servers = []
        for share, token in zip(self.shares, tokens, strict=True):
            peers = stack.enter_context(closing(Peers(token)))
            server = HttpServer(Address("127.0.0.1", 0), Well(), Instance(share, peers.ask), token=token)
            self.servers.append(stack.enter_context(server))
        for share, other in zip(self.shares, reversed(self.servers), strict=True):
            share.other = str(other.address)


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


def test_any_instance_answers_for_any_key(stack):
    two = Two(stack)
    for server in two.servers:
        for number, key in enumerate(KEYS):
            page = get(server.address, f"/stores/counts/keys/{key}")
            assert (page.status, page.json) == (200, {"key": key, "value": number % 2})


def test_any_instance_has_all_entries_page_by_page(stack):
    two = Two(stack)
    for server in two.servers:
        found, cursor = [], ""
        while cursor is not None:
            page = get(
                server.address, "/stores/counts/entries?limit=3" + (f"&cursor={cursor}" if cursor else "")
            ).json
            found += [entry["key"] for entry in page["entries"]]
            cursor = page["cursor"]
        assert found == KEYS


def test_a_key_that_no_instance_has_is_absent(stack):
    two = Two(stack)
    page = get(two.servers[0].address, "/stores/counts/keys/nobody")
    assert (page.status, page.json["code"]) == (404, "absent")


def test_the_one_that_is_asked_by_another_asks_nobody(stack):
    two = Two(stack)
    get(two.servers[0].address, "/stores/counts/keys/nobody")
    first, second = two.shares
    assert [question.alone for question in first.questions + second.questions] == [False, True]


def test_what_is_asked_arrives_as_it_was_asked(stack):
    two = Two(stack)
    two.shares[0].questions.clear()
    get(
        two.servers[0].address,
        '/stores/counts/keys/k%2F%3F?from_time=5&to_time=7&limit=9&standbys=true&position={"in":{"0":3}}',
    )
    (asked,), (passed_on,) = two.shares[0].questions, two.shares[1].questions
    assert msgspec.structs.replace(passed_on, alone=False) == asked
    assert asked.key == "k/?"
    assert asked.position == {"in": {0: 3}}


def test_an_instance_that_is_gone_makes_its_keys_unreachable_and_no_others(stack):
    two = Two(stack)
    two.shares[0].other = "127.0.0.1:9"
    assert get(two.servers[0].address, "/stores/counts/keys/k00").status == 200
    page = get(two.servers[0].address, "/stores/counts/keys/k01")
    assert (page.status, page.json["code"]) == (503, "unreachable")
    assert "partition 1 is assigned to another one" in page.json["why"]
    assert get(two.servers[0].address, "/stores/counts/entries").status == 503


def test_an_instance_that_cannot_read_now_gives_its_reason(stack):
    two = Two(stack)
    two.shares[1].refusing = True
    page = get(two.servers[0].address, "/stores/counts/keys/k01")
    assert (page.status, page.json["error"]) == (503, "the tasks move")


def test_an_instance_asks_with_the_token_that_all_have(stack):
    two = Two(stack, (TOKEN, TOKEN))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert get(two.servers[0].address, "/stores/counts/keys/k01", **headers).status == 200


def test_an_instance_with_another_token_is_named(stack):
    two = Two(stack, (TOKEN, TOKEN + "2"))
    page = get(two.servers[0].address, "/stores/counts/keys/k01", Authorization=f"Bearer {TOKEN}")
    assert page.status == 503
    assert "same --http-token-file" in page.json["hint"]
