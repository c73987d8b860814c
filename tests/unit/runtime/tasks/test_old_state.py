"""State on a disk that missed deletions for too long is restored from the beginning. State that is kept up to date does
not age, whether records come or not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from pystreams.runtime.tasks.task_manager import COMPLETE_INTERVAL_MS
from tests.unit.runtime.tasks.manager_kit import COUNTS_0, World
from tests.unit.runtime.tasks.relay_kit import KEYS, STORES, Relay

HOUR_MS = 3_600_000
ANEW = "is restored from the beginning"


def returned(world: World, after_ms: int) -> None:
    """The tasks are away for so long, and come back."""
    world.assign()
    world.clock.advance_ms(after_ms)
    world.settle()


@pytest.mark.parametrize("transactional", [True, False])
def test_a_task_that_returns_after_a_day_is_restored_from_the_beginning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, transactional: bool
) -> None:
    with closing(World(tmp_path, transactional=transactional)) as world:
        world.feed(COUNTS_0, 10)
        world.settle()
        returned(world, 23 * HOUR_MS)
        assert ANEW not in caplog.text
        returned(world, 25 * HOUR_MS)
        assert caplog.text.count(ANEW) == 1, "the other task has never had a record"
        assert f"store counts {ANEW}: its local content is 25.0 h old" in caplog.text
        world.check_results()
        returned(world, 23 * HOUR_MS)
        assert caplog.text.count(ANEW) == 1


def test_a_task_that_runs_without_records_does_not_age(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(World(tmp_path)) as world:
        world.feed(COUNTS_0, 10)
        world.settle()
        for _ in range(30):
            world.clock.advance_ms(HOUR_MS)
            world.manager.upkeep()
        returned(world, 23 * HOUR_MS)
        assert ANEW not in caplog.text


def test_a_task_whose_member_is_not_answered_ages(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(World(tmp_path)) as world:
        world.feed(COUNTS_0, 10)
        world.settle()
        world.fail("confirm", 1)
        world.clock.advance_ms(25 * HOUR_MS)
        # Others may have had the task since then.
        world.manager.upkeep()
        returned(world, int(COMPLETE_INTERVAL_MS))
        assert caplog.text.count(ANEW) == 1
        world.check_results()


def test_a_standby_without_records_does_not_age(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(Relay(tmp_path)) as relay:
        relay.begin()
        for key in KEYS:
            relay.feed(key, b"v")
        relay.settle()
        for _ in range(30):
            relay.standby.clock.advance_ms(HOUR_MS)
            relay.standby.round()
        relay.standby.keep()
        relay.standby.assign()
        relay.standby.clock.advance_ms(23 * HOUR_MS)
        relay.standby.keep(*STORES)
        relay.standby.assign()
        relay.settle()
        relay.check_results()
        assert ANEW not in caplog.text
        relay.standby.keep()
        relay.standby.assign()
        relay.standby.clock.advance_ms(25 * HOUR_MS)
        relay.standby.keep(*STORES)
        relay.standby.assign()
        assert caplog.text.count(ANEW) == 2
        relay.settle()
        relay.check_results()
