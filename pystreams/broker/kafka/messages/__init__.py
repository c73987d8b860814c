"""The messages of Kafka's groups for stream applications (KIP-1071), which kafka-python does not know.

Each ``.json`` file holds the schema of one message in the form of Kafka's own schemas, from which kafka-python makes
the code that writes and reads it. Source: the protocol of Kafka 4.3, api keys 88 and 89.
"""

# pyright knows an older kafka-python by heart.
# pyright: reportMissingImports=false, reportCallIssue=false
from __future__ import annotations

from kafka.protocol.api_message import ApiMessage


class StreamsGroupHeartbeatRequest(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]
    """A heartbeat of a member; its first one joins the group, its last one leaves it."""


class StreamsGroupHeartbeatResponse(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]
    """The epoch of the member, and its tasks if they have changed."""


class StreamsGroupDescribeRequest(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]
    """Asks for the state of groups."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=__name__):  # type: ignore[misc, call-arg]
    """The groups with their topologies, members and tasks."""
