r"""The states of threads, as data: each with the states that may follow.

A stream thread:

    CREATED -> STARTING -> PARTITIONS_REVOKED <-> PARTITIONS_ASSIGNED <-> RUNNING
                                         \-> PENDING_SHUTDOWN -> DEAD

The thread of global stores:

    CREATED -> RUNNING -> PENDING_SHUTDOWN -> DEAD
         \-----------------^

Source: StreamThread.State, GlobalStreamThread.State.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class ThreadState(Enum):
    """The state of a stream thread."""

    CREATED = "created"
    STARTING = "starting"
    PARTITIONS_REVOKED = "partitions_revoked"
    PARTITIONS_ASSIGNED = "partitions_assigned"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending_shutdown"
    DEAD = "dead"


_T = ThreadState

_REBALANCE = frozenset({_T.PARTITIONS_REVOKED, _T.PARTITIONS_ASSIGNED, _T.PENDING_SHUTDOWN})

THREAD_SUCCESSORS: Mapping[ThreadState, frozenset[ThreadState]] = {
    _T.CREATED: frozenset({_T.STARTING, _T.PENDING_SHUTDOWN}),
    _T.STARTING: _REBALANCE,
    _T.PARTITIONS_REVOKED: _REBALANCE,
    _T.PARTITIONS_ASSIGNED: _REBALANCE | {_T.RUNNING},
    _T.RUNNING: _REBALANCE,
    _T.PENDING_SHUTDOWN: frozenset({_T.DEAD}),
    _T.DEAD: frozenset(),
}


class GlobalThreadState(Enum):
    """The state of the thread of global stores."""

    #: The stores are being opened and filled; nobody reads them yet.
    CREATED = "created"
    #: The stores hold all records that their topics held at the start, and can be read. A thread that fails stays in
    #: this state until it is stopped, because tasks may read the stores until then.
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending_shutdown"
    DEAD = "dead"


_G = GlobalThreadState

GLOBAL_THREAD_SUCCESSORS: Mapping[GlobalThreadState, frozenset[GlobalThreadState]] = {
    _G.CREATED: frozenset({_G.RUNNING, _G.PENDING_SHUTDOWN}),
    _G.RUNNING: frozenset({_G.PENDING_SHUTDOWN}),
    _G.PENDING_SHUTDOWN: frozenset({_G.DEAD}),
    _G.DEAD: frozenset(),
}
