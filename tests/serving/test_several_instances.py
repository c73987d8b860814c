"""Any instance of an application answers for any key: it asks the one that has it, which asks nobody else."""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack, closing

import msgspec
import pyarrow as pa
import pytest

from pystreams.serving.address import Address
from pystreams.serving.query_errors import UnreachableError
from pystreams.serving.server import HttpServer
from pystreams.serving.stores.arrow import ARROW
from pystreams.serving.stores.asking import Instance
from pystreams.serving.stores.parts import Entry, StoreInfo, StorePart
from pystreams.serving.stores.peers import Peers
from pystreams.serving.stores.questions import EntryPlace, Question, only_of, part_of
from tests.serving.http_kit import get
from tests.serving.test_who_may_read import TOKEN, Well

KEYS = [f"k{n:02}" for n in range(20)]
#: Nobody listens there.
GONE = "127.0.0.1:9"


class Share:
    """The stores of an instance that has one of two partitions: the even or the odd keys. It knows where the other one
    is."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.other = ""
        self.followers = []
        self.lag = None
        self.position = {}
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
            {number: self.followers},
            question.key is not None,
            position=self.position,
            lag=self.lag,
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
    assert msgspec.structs.replace(passed_on, alone=False, only=()) == asked
    # It may have a standby of what the first one has itself.
    assert passed_on.only == (1,)
    assert asked.key == "k/?"
    assert asked.position == {"in": {0: 3}}


@pytest.mark.parametrize("only", [(), (0,), (3, 70, 9_999)])
def test_partitions_are_named_in_a_header_that_is_not_too_large(only):
    part = part_of(Question("counts", only=only))
    assert only_of(part) == only
    assert 0 < len(part) < 3_000


@pytest.mark.parametrize("part", ["1", "only=", "only=x", "only"])
def test_whoever_names_no_partitions_asks_for_all(stack, part):
    two = Two(stack)
    with closing(Peers()) as peers:
        for path in ("keys/k00", "entries"):
            assert peers.get(str(two.servers[0].address), f"/stores/counts/{path}", part)[0] == 200
    assert [(question.alone, question.only) for question in two.shares[0].questions] == [(True, ())] * 2


def test_an_instance_that_is_gone_makes_its_keys_unreachable_and_no_others(stack):
    two = Two(stack)
    two.shares[0].other = GONE
    assert get(two.servers[0].address, "/stores/counts/keys/k00").status == 200
    page = get(two.servers[0].address, "/stores/counts/keys/k01")
    assert (page.status, page.json["code"]) == (503, "unreachable")
    assert "partition 1 is assigned to another one" in page.json["why"]
    assert get(two.servers[0].address, "/stores/counts/entries").status == 503


@pytest.mark.parametrize(("lag", "shown"), [(7, "7"), (-1, "unknown")])
def test_whichever_standby_answers_says_what_it_lacks(stack, lag, shown):
    two = Two(stack)
    asked, follower = two.shares
    asked.other, asked.followers, follower.lag = GONE, [GONE, asked.other], lag
    page = get(two.servers[0].address, "/stores/counts/keys/k01?standbys=true")
    assert (page.status, page.json["value"], page.headers["pystreams-standby-lag"]) == (200, 1, shown)
    # The key was looked for at the standby, but the instance itself has it.
    page = get(two.servers[0].address, "/stores/counts/keys/k00?standbys=true")
    assert (page.status, page.headers.get("pystreams-standby-lag")) == (200, None)
    assert get(two.servers[0].address, "/stores/counts/keys/k01?freshness=committed").status == 503


def test_a_position_that_is_too_large_for_a_header_is_in_the_answer(stack):
    two = Two(stack)
    address = two.servers[0].address
    position = {"in": {str(n): 1_000_000 + n for n in range(200)}}
    for number, share in enumerate(two.shares):
        share.position = {"in": {n: 1_000_000 + n for n in range(number, 200, 2)}}
    page = get(address, "/stores/counts/entries")
    assert ("pystreams-position" in page.headers, page.json["position"]) == (False, position)
    page = get(address, "/stores/counts/keys/nobody")
    assert ("pystreams-position" in page.headers, page.json["position"]) == (False, position)
    url = f"http://{address}/stores/counts/entries"
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": ARROW}), timeout=60) as answer:
        assert "pystreams-position" not in answer.headers
        schema = pa.ipc.open_stream(answer.read()).schema
    assert json.loads(schema.metadata[b"position"]) == position

    # A key is in one partition, so the positions of others do not count.
    two.shares[1].position = {"in": {1: 7}}
    page = get(address, "/stores/counts/keys/k01")
    assert (page.headers["pystreams-position"], "position" in page.json) == ('{"in":{"1":7}}', False)
    for share in two.shares:
        share.position = {"in": {share.partition: 7}}
    page = get(address, "/stores/counts/entries")
    assert (page.headers["pystreams-position"], "position" in page.json) == ('{"in":{"0":7,"1":7}}', False)


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
