r"""The states of a client, each with the states that may follow it.

    CREATED -> REBALANCING <-> RUNNING -> PENDING_SHUTDOWN -> NOT_RUNNING
                       \-> PENDING_ERROR -> ERROR

Source: KafkaStreams.State.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class ClientState(Enum):
    """The state of a ``Streams`` client. Only NOT_RUNNING and ERROR are final."""

    CREATED = "created"
    REBALANCING = "rebalancing"
    RUNNING = "running"
    PENDING_SHUTDOWN = "pending_shutdown"
    NOT_RUNNING = "not_running"
    PENDING_ERROR = "pending_error"
    ERROR = "error"


_C = ClientState

CLIENT_SUCCESSORS: Mapping[ClientState, frozenset[ClientState]] = {
    _C.CREATED: frozenset({_C.REBALANCING, _C.PENDING_SHUTDOWN, _C.PENDING_ERROR}),
    _C.REBALANCING: frozenset({_C.RUNNING, _C.PENDING_SHUTDOWN, _C.PENDING_ERROR}),
    _C.RUNNING: frozenset({_C.REBALANCING, _C.PENDING_SHUTDOWN, _C.PENDING_ERROR}),
    _C.PENDING_SHUTDOWN: frozenset({_C.NOT_RUNNING}),
    _C.NOT_RUNNING: frozenset(),
    _C.PENDING_ERROR: frozenset({_C.ERROR}),
    _C.ERROR: frozenset(),
}
