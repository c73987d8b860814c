r"""The states of a client and of its threads, as data: each with the states that may follow.

Those of a task are in ``task_lifecycle``, those of a worker process in ``workers``.

    client   CREATED -> REBALANCING <-> RUNNING -> PENDING_SHUTDOWN -> NOT_RUNNING
                              \-> PENDING_ERROR -> ERROR
    thread   CREATED -> STARTING -> PARTITIONS_REVOKED <-> PARTITIONS_ASSIGNED <-> RUNNING
                                                     \-> PENDING_SHUTDOWN -> DEAD

Source: KafkaStreams.State, StreamThread.State.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar


class ClientState(Enum):
    """The state of a ``Streams`` client. Only NOT_RUNNING and ERROR are final."""

    CREATED = "created"
    REBALANCING = "rebalancing"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending_shutdown"
    NOT_RUNNING = "not_running"
    PENDING_ERROR = "pending_error"
    ERROR = "error"


class ThreadState(Enum):
    """The state of a stream thread."""

    CREATED = "created"
    STARTING = "starting"
    PARTITIONS_REVOKED = "partitions_revoked"
    PARTITIONS_ASSIGNED = "partitions_assigned"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending_shutdown"
    DEAD = "dead"


_C, _T = ClientState, ThreadState

CLIENT_SUCCESSORS: Mapping[ClientState, frozenset[ClientState]] = {
    _C.CREATED: frozenset({_C.REBALANCING, _C.PENDING_SHUTDOWN, _C.PENDING_ERROR}),
    _C.REBALANCING: frozenset({_C.RUNNING, _C.PENDING_SHUTDOWN, _C.PENDING_ERROR}),
    _C.RUNNING: frozenset({_C.REBALANCING, _C.PENDING_SHUTDOWN, _C.PENDING_ERROR}),
    _C.PENDING_SHUTDOWN: frozenset({_C.NOT_RUNNING}),
    _C.NOT_RUNNING: frozenset(),
    _C.PENDING_ERROR: frozenset({_C.ERROR}),
    _C.ERROR: frozenset(),
}

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

State = TypeVar("State", bound=Enum)


class IllegalTransitionError(Exception):
    """A state was to be followed by one that may not follow it: a defect of pystreams."""

    def __init__(self, owner: object, old: Enum, new: Enum) -> None:
        super().__init__(f"{owner} cannot go from {old.name} to {new.name}")
        self.old = old
        self.new = new


def check_transition(
    owner: object, successors: Mapping[State, frozenset[State]], old: State, new: State
) -> State:
    """``new``, if it may follow ``old``. Raises ``IllegalTransitionError``."""
    if new not in successors[old]:
        raise IllegalTransitionError(owner, old, new)
    return new
