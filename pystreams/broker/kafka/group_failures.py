"""Turns errors of a group's coordinator, which kafka-python reports, into errors of pystreams, with messages for
people."""

# pyright knows an older kafka-python by heart.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from typing import Final

from kafka import errors

from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    ConfigError,
    StreamsError,
    TaskMigratedError,
    TopicError,
)

ACL_HINT: Final = "the login of this application needs this permission: an ACL of the cluster grants it"

#: Advice for errors that a retry does not solve.
_HINTS: Final[dict[type[errors.KafkaError], str]] = {
    errors.GroupAuthorizationFailedError: f"READ on the group; {ACL_HINT}",
    errors.TopicAuthorizationFailedError: f"READ and DESCRIBE on the topic; {ACL_HINT}",
    errors.ClusterAuthorizationFailedError: f"an operation on the cluster; {ACL_HINT}",
    errors.SaslAuthenticationFailedError: "check sasl.mechanism, sasl.username and sasl.password",
    errors.InconsistentGroupProtocolError: "consumers of another kind (plain ones, or Java's Kafka Streams) use "
    "this name as their group: choose another application_id, or stop them first; Java's stay members until their "
    "session.timeout.ms is over, 45 s by default",
    errors.GroupMaxSizeReachedError: "the brokers' group.max.size does not allow more threads in one application",
    errors.OffsetMetadataTooLargeError: "raise the brokers' offset.metadata.max.bytes: it limits the times and "
    "counters of the application's operators, which are stored with the offsets",
    errors.InvalidCommitOffsetSizeError: "the group's records are too large for __consumer_offsets: raise its "
    "max.message.bytes, or run fewer threads",
    errors.MessageSizeTooLargeError: "the group's records are too large for __consumer_offsets: raise its "
    "max.message.bytes, or run fewer threads",
    errors.UnsupportedVersionError: "pystreams needs Apache Kafka 2.5 or later",
    errors.FencedInstanceIdError: "another process has the same group.instance.id: each needs its own",
}
_SETTINGS: Final[dict[type[errors.KafkaError], str]] = {
    errors.InvalidSessionTimeoutError: "session_timeout_ms must lie between the brokers' group.min.session.timeout.ms "
    "and group.max.session.timeout.ms",
    errors.InvalidGroupIdError: "choose another application_id",
}
#: Two producers have taken over a transactional id at the same moment, and the coordinator has refused one of them.
_TAKEN_OVER: Final = (errors.ProducerFencedError, errors.InvalidProducerEpochError)


def migrated(why: str, where: str) -> TaskMigratedError:
    """The error for a commit of a member that the group has replaced or removed."""
    return TaskMigratedError(
        "The group has continued without this member: its commit was refused",
        where=where,
        why=why,
        hint="the new owners of its tasks process the records since its last commit",
    )


def is_transient(error: errors.KafkaError) -> bool:
    """Whether the same request may succeed later. An unknown broker may have just gone, or have just been added."""
    return bool(getattr(error, "retriable", False)) or isinstance(error, errors.UnknownBrokerIdError)


def refused(error: errors.KafkaError, what: str, where: str) -> StreamsError:
    """The error of pystreams for an error of kafka-python that reached the caller."""
    why = f"{type(error).__name__}: {error}"
    if type(error) in _SETTINGS:
        return ConfigError(what, where=where, why=why, hint=_SETTINGS[type(error)])
    if isinstance(error, errors.UnknownTopicOrPartitionError):
        return TopicError(
            what,
            where=where,
            why=f"the brokers do not know a topic with this name any more ({why})",
            hint="was it deleted? Create it again, then restart the application",
        )
    if isinstance(error, _TAKEN_OVER):
        return BrokerUnavailableError(
            what,
            where=where,
            why=why,
            hint="two have taken over the same transactional id at once. If this goes on, two processes have the same "
            "id: was a state directory copied, or a group_instance_id given twice?",
        )
    if is_transient(error):
        return BrokerUnavailableError(what, where=where, why=why, hint="are all brokers up?")
    return BrokerError(what, where=where, why=why, hint=_HINTS.get(type(error), ""))
