"""Whatever has a state changes it along the lines that its table allows: clients, threads, tasks, workers, members."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import pytest

from pystreams.broker.kafka.streams_member import STANDING_SUCCESSORS, Standing
from pystreams.engine.stream_task import PHASE_SUCCESSORS, Phase
from pystreams.runtime.client_state import CLIENT_SUCCESSORS, ClientState
from pystreams.runtime.supervisor.worker import WORKER_SUCCESSORS, WorkerState
from pystreams.runtime.tasks.task import TASK_SUCCESSORS, TaskStatus
from pystreams.runtime.threads.thread_state import (
    GLOBAL_THREAD_SUCCESSORS,
    THREAD_SUCCESSORS,
    GlobalThreadState,
    ThreadState,
)
from pystreams.transitions import IllegalTransitionError, check_transition

#: For each table of states: the first one, and those that are final.
MACHINES = [
    (CLIENT_SUCCESSORS, ClientState.CREATED, {ClientState.NOT_RUNNING, ClientState.ERROR}),
    (THREAD_SUCCESSORS, ThreadState.CREATED, {ThreadState.DEAD}),
    (GLOBAL_THREAD_SUCCESSORS, GlobalThreadState.CREATED, {GlobalThreadState.DEAD}),
    (TASK_SUCCESSORS, TaskStatus.CREATED, {TaskStatus.CLOSED}),
    (PHASE_SUCCESSORS, Phase.NEW, {Phase.CLOSED}),
    (WORKER_SUCCESSORS, WorkerState.STARTING, {WorkerState.ENDED}),
    (STANDING_SUCCESSORS, Standing.JOINING, {Standing.LEFT}),
]

each_machine = pytest.mark.parametrize(
    ("successors", "first", "final"), MACHINES, ids=[type(first).__name__ for _, first, _ in MACHINES]
)
Successors = Mapping[Enum, frozenset[Enum]]


@each_machine
def test_every_state_has_an_entry(successors: Successors, first: Enum, final: set[Enum]) -> None:
    assert successors.keys() == set(type(first))


@each_machine
def test_only_final_states_have_no_successors(successors: Successors, first: Enum, final: set[Enum]) -> None:
    assert {state for state, after in successors.items() if not after} == final


@each_machine
def test_every_state_can_be_entered(successors: Successors, first: Enum, final: set[Enum]) -> None:
    reached: set[Enum] = set()
    coming = {first}
    while coming:
        reached |= coming
        coming = {after for state in coming for after in successors[state]} - reached
    assert reached == set(type(first))


@each_machine
def test_every_state_can_end(successors: Successors, first: Enum, final: set[Enum]) -> None:
    ending = set(final)
    while more := {state for state, after in successors.items() if after & ending} - ending:
        ending |= more
    assert ending == set(type(first))


def test_an_illegal_step_names_both_states() -> None:
    with pytest.raises(IllegalTransitionError, match="client x cannot go from NOT_RUNNING to RUNNING"):
        check_transition("client x", CLIENT_SUCCESSORS, ClientState.NOT_RUNNING, ClientState.RUNNING)
