"""Requests that any broker can answer, over kafka-python's connections. Several brokers are asked, because one may be
frozen."""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from typing import Any, Final

from kafka import errors
from kafka.protocol.metadata import FindCoordinatorRequest

from pystreams.clock import Deadline

#: A broker that has not answered for this time may be frozen, so another one is asked.
_SILENCE_MS: Final = 2_000.0


async def ask_any_broker(manager: Any, request: Any, deadline: Deadline) -> Any:
    """Ask one broker after the other until one answers. Raises kafka-python's errors unchanged."""
    while True:
        # The request to a silent broker is still open, so this is another broker, if there is one.
        node = manager.least_loaded_node()
        if node is None:
            raise errors.NodeNotReadyError("no broker is connected")
        silence_ms = min(_SILENCE_MS, max(1.0, deadline.remaining_ms()))
        try:
            return await manager.wait_for(manager.send(request, node_id=node), silence_ms)
        except errors.KafkaTimeoutError:
            if deadline.expired():
                raise


def finding(key: str, kind: int) -> FindCoordinatorRequest:
    """The request for the coordinator of a group or a transactional id."""
    return FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])


def found(response: Any) -> Any:
    """The only coordinator in an answer, with its error code."""
    return response.coordinators[0] if response.coordinators else response
