"""A thread that waits for its first tasks says whom the group waits for, and for how long at most."""

from __future__ import annotations

from unittest import mock

import pytest

from pystreams.broker.port import Admin
from pystreams.clock import ManualClock
from pystreams.errors import BrokerError
from pystreams.runtime.group.group_wait import PATIENCE_MS, WARNING_INTERVAL_MS, GroupWait

SESSION_MS = 45_000


class Scene:
    """A group whose members are set."""

    def __init__(self, caplog: pytest.LogCaptureFixture, *members: str) -> None:
        self.clock = ManualClock()
        self.admin = mock.Mock(spec=Admin)
        self.admin.group_members.side_effect = lambda group: list(self.members)
        self.members = list(members)
        self._caplog = caplog
        self.wait = GroupWait(self.admin, "words", SESSION_MS, self.clock)

    def warning_after(self, milliseconds: int) -> str:
        self._caplog.clear()
        self.clock.advance_ms(milliseconds)
        self.wait.warn_if_long()
        return "\n".join(record.getMessage() for record in self._caplog.records)


def test_who_was_there_before_is_named_with_the_time_that_is_left(caplog: pytest.LogCaptureFixture):
    scene = Scene(caplog, "dead-1")
    scene.members.append("me-2")
    assert scene.warning_after(PATIENCE_MS - 1) == ""
    warning = scene.warning_after(1)
    assert (
        "group words: no tasks for 10 s, because the group waits for a member that was in the group before: dead-1"
        in warning
    )
    assert (
        "if it was killed, its session times out in 35 s at the latest (session_timeout_ms=45000)" in warning
    )
    assert scene.warning_after(WARNING_INTERVAL_MS - 1) == ""
    assert "out in 20 s at the latest" in scene.warning_after(1)


def test_who_has_left_is_not_waited_for(caplog: pytest.LogCaptureFixture):
    scene = Scene(caplog, "gone-1", "dead-2")
    scene.members = ["dead-2"]
    assert "a member that was in the group before: dead-2;" in scene.warning_after(PATIENCE_MS)
    scene.members = []
    assert scene.warning_after(WARNING_INTERVAL_MS) == ""


def test_after_a_whole_session_they_must_be_alive(caplog: pytest.LogCaptureFixture):
    scene = Scene(caplog, "busy-1", "busy-2")
    assert "they are alive, and have been busy for long (max_poll_interval_ms)" in scene.warning_after(
        SESSION_MS + 1
    )


def test_an_empty_group_is_not_asked_again(caplog: pytest.LogCaptureFixture):
    scene = Scene(caplog)
    assert scene.warning_after(10 * SESSION_MS) == ""
    assert scene.admin.group_members.call_count == 1


def test_a_log_that_does_not_answer_is_no_trouble(caplog: pytest.LogCaptureFixture):
    scene = Scene(caplog, "dead-1")
    scene.admin.group_members.side_effect = BrokerError("not allowed")
    assert scene.warning_after(PATIENCE_MS) == ""
