"""A thread that is told where all tasks are tells the other threads of its client, in the right order, and goes on
without that if it cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from pystreams.broker.port import Assigned, Lost, MemberEvent
from pystreams.clock import ManualClock
from pystreams.config import StreamsConfig
from pystreams.errors import BrokerUnavailableError
from pystreams.metrics import Metrics
from pystreams.runtime.group.client_in_group import ClientInGroup
from pystreams.runtime.group.membership_data import AssignmentInfo, Whereabouts, encode, pack_whereabouts
from pystreams.runtime.threads.requests import Requests
from pystreams.runtime.threads.rounds import Rounds, ThreadParts
from pystreams.runtime.threads.thread_state import ThreadState


class Thread:
    """A thread without tasks, and its rounds. It cannot take on an assignment while it is ``held_up``."""

    def __init__(self, in_group: ClientInGroup) -> None:
        self.held_up = False
        self._coming: list[list[MemberEvent]] = []
        tasks: Any = mock.MagicMock()
        tasks.task_ids.return_value = tasks.standby_ids.return_value = tasks.tasks.return_value = []
        tasks.assign.side_effect = self._take_on
        tasks.process.return_value = tasks.punctuate.return_value = tasks.uncommitted_bytes = 0
        tasks.commit_requested = tasks.commit_needed = tasks.commit_often = False
        tasks.next_punctuation_ms.return_value = None
        clients: Any = mock.MagicMock()
        clients.member.poll.side_effect = lambda: self._coming.pop(0) if self._coming else []
        clients.consumer.poll.return_value = []
        owner: Any = mock.MagicMock(state=ThreadState.RUNNING, is_paused=True)
        owner.name = "t"
        clock = ManualClock()
        context: Any = mock.MagicMock(
            clock=clock,
            config=StreamsConfig(application_id="app"),
            metrics=Metrics(),
            in_group=in_group,
            inputs={},
        )
        anything: Any = mock.MagicMock()
        self.requests: Requests[Any] = Requests("t", 0)
        self.requests.stop.wait = lambda timeout=None: False  # type: ignore[method-assign]
        parts = ThreadParts(clients, anything, anything, tasks, anything, self.requests, anything, anything)
        self.rounds = Rounds(owner, context, parts, None)

    def _take_on(self, *_: object) -> None:
        if self.held_up:
            raise BrokerUnavailableError("the brokers do not answer")

    def hears(self, *events: MemberEvent) -> None:
        """Has one round, in which the group says this."""
        self._coming.append([*events])
        self.rounds.go_round()


def assigned(generation: int, info: AssignmentInfo) -> Assigned:
    return Assigned(generation, (), encode(info))


def told(generation: int, *threads: str) -> Assigned:
    """An assignment that says where all tasks are."""
    return assigned(generation, AssignmentInfo(whereabouts=pack_whereabouts(Whereabouts([*threads]))))


def test_what_a_thread_is_told_is_kept_until_a_thread_is_told_something_else() -> None:
    client = ClientInGroup()
    one, other = Thread(client), Thread(client)
    one.hears(told(1, "a", "b"))
    other.hears(assigned(2, AssignmentInfo()))
    assert client.whereabouts.threads == ["a", "b"]
    other.hears(told(3, "b"))
    assert client.whereabouts.threads == ["b"]


def test_a_thread_that_is_held_up_does_not_bring_back_what_it_was_told_before() -> None:
    client = ClientInGroup()
    held_up, other = Thread(client), Thread(client)
    held_up.held_up = True
    held_up.hears(told(1, "old"))
    other.hears(told(2, "new"))
    held_up.hears()
    assert client.whereabouts.threads == ["new"]


@pytest.mark.parametrize(
    "lose",
    [
        lambda thread: thread.hears(Lost("gone")),
        lambda thread: thread.rounds._rejoin(ValueError("gone"), None),
    ],
    ids=["removed", "joins again"],
)
def test_after_a_loss_a_new_group_may_count_from_1(lose: Callable[[Thread], None]) -> None:
    client = ClientInGroup()
    thread = Thread(client)
    thread.hears(told(7, "old"))
    lose(thread)
    thread.hears(told(1, "new"))
    assert client.whereabouts.threads == ["new"]


def test_what_cannot_be_read_does_not_end_the_thread_and_what_is_known_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = ClientInGroup()
    thread = Thread(client)
    thread.hears(told(1, "a"))
    with caplog.at_level(logging.WARNING):
        thread.hears(assigned(2, AssignmentInfo(members=5, whereabouts=b"no deflated bytes")))
    assert client.whereabouts.threads == ["a"]
    assert thread.rounds.assignment_info.members == 5
    (warning,) = caplog.messages
    assert warning.startswith("[t] the group has said where all tasks are, but it cannot be read")
