"""A group that refuses us is asked again while its members may be Java's of an application that was closed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kafka import errors

from pystreams.broker.kafka.java_members import JavaMembers
from pystreams.clock import ManualClock

SESSION_TIMEOUT_MS = 45_000
#: What the coordinator may take longer than that.
MARGIN_MS = 2_000
JAVA = SimpleNamespace(client_id="orders-1-StreamThread-1-consumer", client_host="/10.0.0.7")


class Coordinator:
    """Answers the one request that is made."""

    group = "orders"

    def __init__(self, protocol: str, *members: Any, state: str = "Stable", error_code: int = 0) -> None:
        self.described = SimpleNamespace(
            group_id=self.group,
            protocol_data=protocol,
            members=list(members),
            group_state=state,
            error_code=error_code,
        )

    def ask(self, _request: Any, read: Any, _timeout_ms: float) -> Any:
        return read(SimpleNamespace(groups=[self.described]))


def java_members(coordinator: Any, clock: ManualClock) -> JavaMembers:
    return JavaMembers(coordinator, "group orders", SESSION_TIMEOUT_MS, clock)


def test_a_group_of_javas_is_asked_again_now_and_then_until_a_session_is_over(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
):
    members = java_members(Coordinator("stream", JAVA), clock)
    began_ms = clock.now_ms()
    while True:
        assert members.may_join()
        if not members.wait():
            break
        clock.advance_ms(499)
        assert not members.may_join()
        clock.advance_ms(1)
    assert clock.now_ms() - began_ms == SESSION_TIMEOUT_MS + MARGIN_MS
    (told,) = caplog.messages
    assert "group orders: waiting for up to 45 s" in told
    assert "orders-1-StreamThread-1-consumer at /10.0.0.7" in told


def test_another_wait_begins_anew_after_a_join(clock: ManualClock, caplog: pytest.LogCaptureFixture):
    members = java_members(Coordinator("stream", JAVA), clock)
    assert members.wait()
    clock.advance_ms(SESSION_TIMEOUT_MS)
    members.joined()
    assert members.may_join()
    clock.advance_ms(SESSION_TIMEOUT_MS)
    assert members.wait()
    assert len([line for line in caplog.messages if "waiting for up to" in line]) == 2


def test_members_that_have_gone_meanwhile_are_not_waited_for_in_vain(clock: ManualClock):
    assert java_members(Coordinator("", state="Empty"), clock).wait()


@pytest.mark.parametrize(
    "coordinator",
    [
        Coordinator("range", JAVA),
        Coordinator("", state="Dead"),
        Coordinator("stream", JAVA, error_code=errors.GroupAuthorizationFailedError.errno),
    ],
    ids=["plain consumers", "a group of another type", "nobody may look"],
)
def test_whoever_else_is_in_the_group_is_not_waited_for(
    clock: ManualClock, caplog: pytest.LogCaptureFixture, coordinator: Coordinator
):
    members = java_members(coordinator, clock)
    assert not members.wait()
    assert members.may_join()
    assert caplog.messages == []
