"""A client's settings reach the embedded log: a busy thread stays a member for ``max_poll_interval_ms``, however short
the session is, and a frozen process loses its membership with its session."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pystreams.broker.connecting import open_broker
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import Broker, Lost, Member, MemberAssignment, MemberInfo
from pystreams.clock import SystemClock
from pystreams.config import StreamsConfig
from tests.live.support import eventually
from tests.unit.broker.log_helpers import freeze

SESSION_TIMEOUT_MS, MAX_POLL_INTERVAL_MS = 1_000, 4_000

#: Joins and polls until it is killed.
FROZEN = """
import sys, time
from pystreams.broker.embedded import EmbeddedBroker
broker = EmbeddedBroker(sys.argv[1], session_timeout_ms=1_000, heartbeat_interval_ms=200)
member = broker.member("frozen", "group", ["in"], lambda: b"", lambda members: {})
while True:
    member.poll()
    time.sleep(0.01)
"""


def nothing(members: Sequence[MemberInfo]) -> dict[str, MemberAssignment]:
    return {member.member_id: MemberAssignment((), b"") for member in members}


def join(broker: Broker, name: str) -> Member:
    return broker.member(name, "group", ["in"], lambda: b"", nothing)


def last_heartbeat_ms(log: Path, but: str) -> int:
    """When the only member but one was heard of for the last time, by the machine's monotonic clock."""
    with closing(sqlite3.connect(log)) as connection:
        ((heartbeat_ms,),) = connection.execute(
            "SELECT heartbeat_ms FROM members WHERE member_id <> ?", (but,)
        )
    return int(heartbeat_ms)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    config = StreamsConfig.of(
        application_id="busy",
        embedded_log=tmp_path / "log.db",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=200,
        max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
    )
    with closing(open_broker(config, SystemClock())) as broker:
        yield broker


def test_a_busy_thread_stays_a_member_until_max_poll_interval_ms(broker: Broker) -> None:
    busy, other = join(broker, "busy"), join(broker, "other")
    began = time.monotonic()
    busy.poll()

    def removed() -> bool:
        other.poll()
        with closing(broker.admin()) as admin:
            return admin.group_members("group") == [other.member_id]

    eventually(removed, "the busy one is removed")
    assert time.monotonic() - began >= MAX_POLL_INTERVAL_MS / 1000
    assert any(isinstance(event, Lost) for event in busy.poll())
    busy.close()
    other.close()


def test_a_frozen_process_is_removed_when_its_session_is_over(broker: Broker, tmp_path: Path) -> None:
    other = join(broker, "other")
    other.poll()
    with (
        closing(broker.admin()) as admin,
        subprocess.Popen([sys.executable, "-c", FROZEN, str(tmp_path / "log.db")]) as process,
    ):
        eventually(lambda: len(admin.group_members("group")) == 2, "both are members")
        freeze(process.pid, tmp_path / "log.db")
        began, last_seen_ms = time.monotonic(), last_heartbeat_ms(tmp_path / "log.db", other.member_id)

        def removed() -> bool:
            other.poll()
            return admin.group_members("group") == [other.member_id]

        eventually(removed, "the frozen one is removed")
        removed_ms = time.monotonic() * 1000
        os.kill(process.pid, signal.SIGKILL)
    assert removed_ms - last_seen_ms > SESSION_TIMEOUT_MS
    # Its max_poll_interval_ms is five minutes.
    assert removed_ms / 1000 - began < 30
    other.close()


def test_a_connection_in_another_process_has_the_same_patience(broker: Broker) -> None:
    with closing(broker.opener()()) as reopened:
        assert isinstance(reopened, EmbeddedBroker)
        assert reopened._pulse._max_poll_interval_ms == MAX_POLL_INTERVAL_MS
