"""Clients and threads change their states along Java's lines only."""

from __future__ import annotations

import pytest

from pystreams.runtime.client_state import CLIENT_SUCCESSORS, ClientState
from pystreams.runtime.threads.thread_state import (
    GLOBAL_THREAD_SUCCESSORS,
    THREAD_SUCCESSORS,
    GlobalThreadState,
    ThreadState,
)
from pystreams.transitions import IllegalTransitionError, check_transition


def test_final_states_have_no_successors() -> None:
    assert [s for s, after in CLIENT_SUCCESSORS.items() if not after] == [
        ClientState.NOT_RUNNING,
        ClientState.ERROR,
    ]
    assert [s for s, after in THREAD_SUCCESSORS.items() if not after] == [ThreadState.DEAD]
    assert [s for s, after in GLOBAL_THREAD_SUCCESSORS.items() if not after] == [GlobalThreadState.DEAD]


def test_every_state_has_an_entry() -> None:
    assert CLIENT_SUCCESSORS.keys() == set(ClientState)
    assert THREAD_SUCCESSORS.keys() == set(ThreadState)
    assert GLOBAL_THREAD_SUCCESSORS.keys() == set(GlobalThreadState)


def test_an_illegal_step_names_both_states() -> None:
    with pytest.raises(IllegalTransitionError, match="client x cannot go from NOT_RUNNING to RUNNING"):
        check_transition("client x", CLIENT_SUCCESSORS, ClientState.NOT_RUNNING, ClientState.RUNNING)
