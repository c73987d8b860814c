"""On the embedded log a thread may work as long without polling as on Kafka: for ``max_poll_interval_ms``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pystreams.broker.connecting import open_broker
from pystreams.broker.port import Lost, MemberAssignment, MemberEvent, MemberInfo
from pystreams.clock import ManualClock
from pystreams.config import StreamsConfig


def nothing(members: Sequence[MemberInfo]) -> dict[str, MemberAssignment]:
    return {member.member_id: MemberAssignment((), b"") for member in members}


def test_a_busy_thread_stays_a_member_until_max_poll_interval_ms(tmp_path: Path) -> None:
    clock = ManualClock()
    config = StreamsConfig.of(
        application_id="busy",
        embedded_log=tmp_path / "log.db",
        session_timeout_ms=45_000,
        max_poll_interval_ms=300_000,
    )
    with closing(open_broker(config, clock)) as broker:
        busy = broker.member("busy", "group", ["in"], lambda: b"", nothing)
        other = broker.member("other", "group", ["in"], lambda: b"", nothing)

        def after(milliseconds: int) -> list[MemberEvent]:
            """What the busy member hears when it polls at last, the other one having polled before it."""
            clock.advance_ms(milliseconds)
            other.poll()
            return busy.poll()

        after(0)
        assert not any(isinstance(event, Lost) for event in after(299_000))
        assert any(isinstance(event, Lost) for event in after(301_000))
        other.close()
        busy.close()
