r"""The states of a stream thread, as data: each with the states that may follow.

    CREATED -> STARTING -> PARTITIONS_REVOKED <-> PARTITIONS_ASSIGNED <-> RUNNING
                                         \-> PENDING_SHUTDOWN -> DEAD

Source: StreamThread.State.
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
