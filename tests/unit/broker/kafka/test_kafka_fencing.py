"""Who is gone is fenced, and nobody else: not even if the group's coordinator has not loaded its members yet."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from pystreams.broker.port import TransactionContent
from pystreams.clock import ManualClock
from pystreams.errors import BrokerUnavailableError
from pystreams.ids import TaskId

with warnings.catch_warnings():
    # kafka-python reads its message schemas by a function that is deprecated since Python 3.11.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pystreams.broker.kafka import KafkaBroker
    from pystreams.broker.kafka import broker as broker_module
    from pystreams.broker.kafka.fencing import DOUBT_MS, Doubt
    from pystreams.broker.kafka.transaction_coordination import (
        LastTransaction,
        ListedTransaction,
        ProducerId,
    )

PROCESS = "0b1e6c0e-6a54-4f0a-9d7e-2a3c6c2f3b11"
OURS, OTHER = f"shop-{PROCESS}-1-1", f"shop-{PROCESS}-1-2"
CONTENT = TransactionContent("shop", frozenset({"out"}))


class Coordinators:
    """Those of two members' transactions and of their group. Nothing hangs."""

    def __init__(self) -> None:
        self.members = {OURS, OTHER}
        self.states = {OURS: "Empty", OTHER: "Ongoing"}

    def forget_coordinators(self) -> None:
        """They are always the same."""

    def transactions(self, pattern: Any) -> list[ListedTransaction]:
        return [ListedTransaction(name, 5, state) for name, state in self.states.items()]

    def members_ids(self, group: str) -> set[str]:
        assert group == "shop"
        return self.members

    def last_transaction(self, transactional_id: str) -> LastTransaction:
        return LastTransaction(ProducerId(transactional_id, 5, 0), self.states[transactional_id])

    def wait_for_end(self, transactional_id: str, timeout_ms: int) -> LastTransaction:
        self.states[transactional_id] = "Empty"
        return self.last_transaction(transactional_id)

    def close(self) -> None:
        """There is no connection."""


class Member:
    """As the group's coordinator has confirmed it, or removed it."""

    def __init__(self, *_: object) -> None:
        self.joined = True

    def can_commit(self) -> bool:
        return self.joined


@pytest.fixture
def coordinators() -> Coordinators:
    return Coordinators()


@pytest.fixture
def broker(coordinators: Coordinators, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaBroker]:
    """Nobody answers there, but for the coordinators."""
    monkeypatch.setattr(KafkaBroker, "_connect", lambda self, timeout_s: None)
    monkeypatch.setattr(KafkaBroker, "_transactions", lambda self: coordinators)
    for kind in ("KafkaMember", "StreamsGroupMember"):
        monkeypatch.setattr(broker_module, kind, Member)
    with closing(KafkaBroker("127.0.0.1:1", exactly_once=True)) as broker:
        yield broker


def join(broker: KafkaBroker, group: str = "shop", *, by_broker: bool = False) -> Any:
    application: Any = SimpleNamespace() if by_broker else None
    return broker.member("c", group, ["in"], bytes, lambda _: {}, application=application)


def fence(broker: KafkaBroker) -> None:
    broker.fence(CONTENT, [TaskId(0, 0)])


@pytest.mark.parametrize("by_broker", [False, True])
def test_no_member_is_fenced_while_the_group_shows_not_even_ours(broker, coordinators, by_broker: bool):
    ours = join(broker, by_broker=by_broker)
    coordinators.members = set()
    with pytest.raises(BrokerUnavailableError, match="shows no members, but this client is one") as refused:
        fence(broker)
    assert refused.value.action == "retry"
    assert coordinators.states[OTHER] == "Ongoing"
    # It has loaded them.
    coordinators.members = {OURS}
    fence(broker)
    assert coordinators.states[OTHER] == "Empty"
    assert ours.joined


def test_a_group_that_stays_empty_is_believed_in_the_end(broker, coordinators):
    ours = join(broker)
    coordinators.members = set()
    clock = ManualClock()
    broker._doubt = Doubt(clock)
    for _ in range(3):
        with pytest.raises(BrokerUnavailableError, match="shows no members"):
            fence(broker)
        clock.advance_ms(DOUBT_MS / 2 - 1)
    clock.advance_ms(3)
    fence(broker)
    assert coordinators.states[OTHER] == "Empty"
    assert ours.joined
    # The next time it is doubted again.
    coordinators.states[OTHER] = "Ongoing"
    with pytest.raises(BrokerUnavailableError, match="shows no members"):
        fence(broker)


def test_who_knows_that_the_group_has_removed_it_does_not_wait_for_its_members(broker, coordinators):
    ours = join(broker)
    coordinators.members, ours.joined = set(), False
    fence(broker)
    assert coordinators.states[OTHER] == "Empty"


@pytest.mark.parametrize("other_group", [False, True])
def test_who_is_no_member_finds_an_empty_group_right(broker, coordinators, other_group: bool):
    elsewhere = join(broker, "market") if other_group else None
    coordinators.members = set()
    fence(broker)
    assert coordinators.states[OTHER] == "Empty"
    assert elsewhere is None or elsewhere.joined


def test_an_empty_group_is_no_trouble_while_no_transaction_is_open(broker, coordinators):
    ours = join(broker)
    coordinators.members, coordinators.states[OTHER] = set(), "Empty"
    fence(broker)
    assert ours.joined


def test_a_living_member_is_never_fenced(broker, coordinators):
    ours = join(broker)
    fence(broker)
    assert coordinators.states[OTHER] == "Ongoing"
    assert ours.joined
