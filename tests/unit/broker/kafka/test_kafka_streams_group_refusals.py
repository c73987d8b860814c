"""What a broker refuses to a group whose tasks it assigns comes with what to do about it. ``said`` is what Kafka 4.3.1
says, and empty where it gives a code alone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pystreams.broker.kafka import streams_failures as failures
from pystreams.broker.kafka import streams_heartbeat as beats
from pystreams.broker.kafka.streams_heartbeat import HeartbeatRefusedError
from pystreams.errors import BrokerError, ConfigError, StreamsError, TopicError, TopologyError
from pystreams.ids import TaskId

WHERE = "group counted, thread 1"
NOT_ACCEPTED = "The broker does not accept this member of the group"
MORE_PARTITIONS = (
    "stop all members, then start again: an application without state then reads the new partitions; an application "
    "with state needs a reset (pystreams reset), because keys have moved"
)
LOGIN = "the login needs READ on the group and on the source topics, and CREATE on internal topics"
CLASSIC = 'use group_protocol="classic"'


def parts(error: StreamsError | None) -> tuple[type | None, str, str, str, str]:
    assert error is not None
    return type(error), error.what, error.where, error.why, error.hint


@pytest.mark.parametrize(
    ("code", "said", "kind", "what", "why", "hint"),
    [
        pytest.param(
            42,
            "Topology updates are not supported yet.",
            TopologyError,
            "The group runs another topology",
            "brokers up to 4.3 do not change the topology of a group "
            "(InvalidRequestError (42): Topology updates are not supported yet.)",
            'stop all members, and run the changed application once with group_protocol="classic", which keeps its '
            'offsets; after that "streams" takes it as a new one',
            id="another-topology",
        ),
        pytest.param(
            -1,
            "",
            BrokerError,
            NOT_ACCEPTED,
            "error -1",
            "the broker's log has the reason; brokers up to 4.3 answer so if a source topic has got more partitions "
            f"than its changelogs: in this case, {MORE_PARTITIONS}",
            id="no-reason",
        ),
        pytest.param(
            35,
            "",
            BrokerError,
            NOT_ACCEPTED,
            "error 35",
            "groups for stream applications need Kafka 4.2 or newer with the feature streams.version=1 "
            f"(kafka-features.sh upgrade --feature streams.version=1); {CLASSIC}",
            id="an-old-broker",
        ),
        pytest.param(
            69,
            "Group counted is not a streams group.",
            BrokerError,
            NOT_ACCEPTED,
            "GroupIdNotFoundError (69): Group counted is not a streams group.",
            'the group has members of another kind, such as those with group_protocol="classic": stop them first',
            id="members-of-another-kind",
        ),
        pytest.param(
            29, "", BrokerError, NOT_ACCEPTED, "error 29", LOGIN, id="a-login-that-may-not-read-a-topic"
        ),
        pytest.param(
            30, "", BrokerError, NOT_ACCEPTED, "error 30", LOGIN, id="a-login-that-may-not-read-the-group"
        ),
        pytest.param(
            130,
            "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
            TopologyError,
            "The broker cannot run this topology",
            # kafka-python has no name for it.
            "UnrecognizedBrokerError (130): Use of Kafka internal topics __consumer_offsets in a Kafka Streams "
            "topology is prohibited.",
            CLASSIC,
            id="a-topology-that-it-cannot-run",
        ),
        pytest.param(
            42,
            "Static membership is not yet supported.",
            ConfigError,
            NOT_ACCEPTED,
            "InvalidRequestError (42): Static membership is not yet supported.",
            CLASSIC,
            id="static-members-not-yet-supported",
        ),
        pytest.param(
            42,
            "Regular expressions for source topics are not supported yet.",
            ConfigError,
            NOT_ACCEPTED,
            "InvalidRequestError (42): Regular expressions for source topics are not supported yet.",
            CLASSIC,
            id="patterns-not-yet-supported",
        ),
        pytest.param(
            42,
            "MemberId can't be empty.",
            BrokerError,
            NOT_ACCEPTED,
            "InvalidRequestError (42): MemberId can't be empty.",
            "",
            id="nothing-that-the-user-can-do",
        ),
    ],
)
def test_a_refused_heartbeat(
    code: int, said: str, kind: type[StreamsError], what: str, why: str, hint: str
) -> None:
    error = failures.heartbeat_refused(HeartbeatRefusedError(code, said), WHERE)
    assert parts(error) == (kind, what, WHERE, why, hint)


@pytest.mark.parametrize(
    ("difference", "why"),
    [
        ("", ""),
        ("store counts is gone", "the first difference to the topology that ran last: store counts is gone"),
    ],
)
def test_a_member_with_another_topology_than_the_others(difference: str, why: str) -> None:
    assert parts(failures.other_version("thread 2", difference, WHERE)) == (
        TopologyError,
        "the group refuses this member: the topology of thread 2 differs from the one that the group runs",
        WHERE,
        why,
        "stop the other members first, or give the changed application another application_id",
    )


def test_tasks_of_partitions_that_came_after_the_start() -> None:
    assert parts(failures.unknown_tasks([TaskId(0, 3), TaskId(0, 2)], WHERE)) == (
        TopicError,
        "The broker assigns tasks that the application did not have when it started: 0_2, 0_3",
        WHERE,
        "a source topic has got more partitions",
        MORE_PARTITIONS,
    )


NO_TASKS = "The broker gives out no tasks"
STALE = "The member's topology epoch 0 is behind the group's topology epoch 1."
OTHER_COUNT = (
    "Existing topic counted-counts-changelog has different number of partitions: expected 3, found 2"
)
CREATE = f"create what is missing; if a topic has got more partitions, {MORE_PARTITIONS}"


@pytest.mark.parametrize(
    ("status", "kind", "what", "why", "hint"),
    [
        (
            {beats.STALE_TOPOLOGY: STALE},
            TopologyError,
            "The group runs a newer topology",
            STALE,
            "stop this member",
        ),
        (
            {beats.MISSING_SOURCE_TOPICS: "Source topics in are missing."},
            TopicError,
            NO_TASKS,
            "Source topics in are missing.",
            CREATE,
        ),
        (
            {beats.INCORRECTLY_PARTITIONED_TOPICS: OTHER_COUNT},
            TopicError,
            NO_TASKS,
            OTHER_COUNT,
            CREATE,
        ),
    ],
)
def test_a_group_that_gets_no_tasks(
    status: Mapping[int, str], kind: type[StreamsError], what: str, why: str, hint: str
) -> None:
    assert parts(failures.group_cannot_run(status, WHERE)) == (kind, what, WHERE, why, hint)


def test_a_status_that_goes_away_by_itself_is_no_error() -> None:
    assert (
        failures.group_cannot_run({beats.MISSING_INTERNAL_TOPICS: "", beats.ASSIGNMENT_DELAYED: ""}, WHERE)
        is None
    )
