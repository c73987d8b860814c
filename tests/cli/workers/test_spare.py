"""A spare process imports everything, and waits for a worker to die. It does not import the program."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from pystreams.cli.commands.workers.process import SPARE, WorkerProcess
from pystreams.cli.commands.workers.spare import START_AFTER_MS, Spare
from pystreams.clock import ManualClock
from tests.linux import alive


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def processes() -> Iterator[list[WorkerProcess]]:
    """All that were started."""
    started: list[WorkerProcess] = []

    class Kept(WorkerProcess):
        def __init__(self, application: str, number: int = SPARE) -> None:
            super().__init__(application, number)
            started.append(self)

    with mock.patch("pystreams.cli.commands.workers.spare.WorkerProcess", Kept):
        yield started


@pytest.fixture
def spare(clock: ManualClock, processes: list[WorkerProcess]) -> Iterator[Spare]:
    made = Spare("no_such_program", clock)
    yield made
    made.close()


def start(spare: Spare, clock: ManualClock) -> None:
    """Let the time pass after which the next process is due."""
    clock.advance_ms(START_AFTER_MS)
    spare.tick()


def test_it_starts_a_while_after_the_workers(spare, clock, processes):
    clock.advance_ms(START_AFTER_MS - 1)
    spare.tick()
    assert not processes
    clock.advance_ms(1)
    spare.tick()
    spare.tick()
    (process,) = processes
    assert process.exit_code() is None


def test_it_belongs_to_who_takes_it_and_the_next_one_comes_a_while_later(spare, clock, processes):
    start(spare, clock)
    taken = spare.take()
    assert taken is processes[0]
    assert taken.number == SPARE
    spare.tick()
    assert spare.take() is None
    start(spare, clock)
    assert len(processes) == 2
    assert taken.exit_code() is None
    taken.discard()


def test_one_that_has_died_is_not_given_away_but_replaced(spare, clock, processes):
    start(spare, clock)
    processes[0].kill()
    assert spare.take() is None
    start(spare, clock)
    assert len(processes) == 2
    processes[1].kill()
    spare.tick()
    start(spare, clock)
    assert spare.take() is processes[2]
    processes[2].discard()


def test_it_ends_with_its_supervisor(spare, clock, processes):
    start(spare, clock)
    spare.close()
    assert not alive(processes[0].pid)


def test_workers_start_without_it_where_the_system_has_no_room(spare, clock, processes):
    with mock.patch.object(WorkerProcess, "__init__", side_effect=OSError("no room")):
        start(spare, clock)
    assert spare.take() is None
    start(spare, clock)
    assert len(processes) == 1
