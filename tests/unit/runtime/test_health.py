"""A client is live while a restart would not help, and ready while all its tasks run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.health import Health, health_of
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.runtime.threads.progress import RestoreProgress, TaskProgress, ThreadProgress
from pystreams.runtime.threads.thread_state import ThreadState

RUNNING = ClientState.RUNNING
TASK = TaskProgress(TaskId(0, 0), TaskStatus.RUNNING, (TopicPartition("in", 0),), lag=7)
THREAD = ThreadProgress("t", ThreadState.RUNNING, tasks=(TASK,))


def health(
    state: ClientState,
    *threads: ThreadProgress,
    lag_max: int | None = None,
    round_ms: float = 5.0,
    has_subtopologies: bool = True,
) -> Health:
    return health_of(
        state,
        threads,
        {thread.name: round_ms for thread in threads},
        stuck_after_ms=1_000,
        lag_max=lag_max,
        has_subtopologies=has_subtopologies,
    )


def test_a_client_whose_threads_run_is_ready():
    assert health(RUNNING, THREAD) == Health(live=True, ready=True)


@pytest.mark.parametrize("state", [state for state in ClientState if state is not RUNNING])
def test_in_all_other_states_it_is_not_and_says_why(state):
    found = health(state, THREAD)
    assert not found.ready
    assert found.reasons
    assert found.live is (state is not ClientState.ERROR)
    assert found.stopping is (state not in (ClientState.CREATED, ClientState.REBALANCING))


@pytest.mark.parametrize("state", [ClientState.PENDING_SHUTDOWN, ClientState.PENDING_ERROR])
def test_a_thread_that_is_stuck_while_the_client_waits_for_its_end_is_stuck(state):
    found = health(state, THREAD, round_ms=61_001)
    assert not found.live
    assert found.reasons[1:] == ("t has been at the same work for 61 s",)


def test_a_task_that_is_restored_is_named():
    restore = RestoreProgress(TaskId(1, 2), "counts", 0, 5, 10, 5)
    thread = replace(THREAD, state=ThreadState.PARTITIONS_ASSIGNED, restoring=(restore,))
    found = health(ClientState.REBALANCING, thread)
    assert found == Health(True, False, ("t is in state PARTITIONS_ASSIGNED", "t restores 1_2"))


@pytest.mark.parametrize("ended", [ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD])
def test_a_thread_that_was_removed_matters_if_no_other_works(ended):
    removed = ThreadProgress("u", ended)
    assert health(RUNNING, THREAD, removed).ready
    for threads in ((removed,), ()):
        assert health(RUNNING, *threads) == Health(True, False, ("no stream thread works",))


def test_a_client_with_global_stores_alone_needs_no_threads():
    assert health(RUNNING, has_subtopologies=False).ready


def test_a_thread_that_never_comes_round_is_stuck():
    assert health(RUNNING, THREAD, round_ms=999).live
    assert health(RUNNING, THREAD, round_ms=61_001) == Health(
        False, False, ("t has been at the same work for 61 s",)
    )


@pytest.mark.parametrize("limit,ready", [(None, True), (7, True), (6, False)])
def test_the_lag_counts_if_it_is_limited(limit, ready):
    assert health(RUNNING, THREAD, lag_max=limit).ready is ready


def test_a_lag_that_is_not_known_is_not_taken_for_none():
    unknown = replace(THREAD, tasks=(replace(TASK, lag=None),))
    assert health(RUNNING, unknown).ready
    assert health(RUNNING, unknown, lag_max=5).reasons == ("the lag is not known yet",)
