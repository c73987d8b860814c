"""The clock of a Kafka cluster: there is no request for the time, but the state of the controllers includes it."""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from typing import Any, Final

from kafka import errors
from kafka.protocol.admin import DescribeQuorumRequest

from pystreams.broker.kafka.any_broker import ask_any_broker
from pystreams.clock import Deadline

#: The log of the controllers.
_TOPIC: Final = "__cluster_metadata"


async def ask_clock_ms(manager: Any, deadline: Deadline) -> int | None:
    """The time of the active controller, in ms since the epoch; None if it is not available. Raises errors of
    kafka-python.

    The active controller reports the present time as the time at which it has caught up with its own log.
    """
    topic = DescribeQuorumRequest.TopicData
    partition = topic.PartitionData(partition_index=0)
    request = DescribeQuorumRequest(
        topics=[topic(topic_name=_TOPIC, partitions=[partition])], min_version=1, max_version=2
    )
    try:
        answer = await ask_any_broker(manager, request, deadline)
    except (errors.IncompatibleBrokerVersion, errors.UnsupportedVersionError):
        return None
    for described in (one for topic in answer.topics for one in topic.partitions):
        for voter in described.current_voters:
            if voter.replica_id == described.leader_id and voter.last_caught_up_timestamp > 0:
                return int(voter.last_caught_up_timestamp)
    return None
