"""Administration of a Kafka cluster: topics, offsets and groups."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import (
    OFFSET_INVALID,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    Uuid,
)
from confluent_kafka import TopicPartition as Location
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclOperation
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic
from kafka import errors

from pystreams.broker.kafka import streams_group
from pystreams.broker.kafka.admin_client import SharedAdminClient
from pystreams.broker.kafka.coordination import GroupConnection
from pystreams.broker.kafka.failures import error_of, failure, is_unavailable
from pystreams.broker.kafka.group_description import describe_group, list_member_ids
from pystreams.broker.kafka.group_failures import refused
from pystreams.broker.kafka.settings import KafkaSettings
from pystreams.broker.port import (
    ANSWER_TIMEOUT_MS,
    CommittedOffset,
    Deletion,
    GroupDescription,
    TopicDescription,
    TopicSpec,
    has_members,
)
from pystreams.clock import Deadline, SystemClock
from pystreams.errors import (
    BrokerError,
    BrokerUnavailableError,
    ConfigError,
    OffsetOutOfRangeError,
    TopicError,
)
from pystreams.ids import MemberName, TopicPartition

T = TypeVar("T")

log = logging.getLogger(__name__)

_TIMEOUT_S: Final = 30.0
#: How long it may take until all brokers know that a topic was created or deleted.
_SPREAD_TIMEOUT_S: Final = 30.0
_SPREAD_PAUSE_S: Final = 0.02
#: The timeout of the first request to the leaders of partitions; later ones are longer.
_LEADER_TIMEOUT_S: Final = 3.0
_REQUEST_TIMEOUT_MIN_S: Final = 0.1
#: The most records of metadata that a request to create topics should need: a partition is one, a topic and each of its
#: settings another. A controller refuses requests that need more than 10,000.
_NEW_RECORDS_MAX: Final = 2_000
_REMOVE_TIMEOUT_MS: Final = 2_000.0

_EARLIEST: Final[OffsetSpec] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Final[OffsetSpec] = OffsetSpec.latest()  # type: ignore[no-untyped-call]

#: The id that brokers without topic ids return.
_NO_ID: Final = str(Uuid(0, 0))
_NOT_TO_BE_SEEN: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED})

#: Kafka's own topics.
_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


class ClusterFacts(NamedTuple):
    """The number of brokers that answer, and the newest version of Kafka whose requests they all understand."""

    brokers: int
    version: tuple[int, ...]


class KafkaAdmin:
    """See ``port.Admin``. Threads may share it."""

    def __init__(self, client: SharedAdminClient, settings: KafkaSettings, client_id: str) -> None:
        self._shared = client
        self._settings = settings
        self._client_id = client_id
        self._where = settings.description
        self._groups: dict[str, GroupConnection] = {}
        self._mutex = threading.Lock()

    @property
    def _client(self) -> AdminClient:
        return self._shared.current

    def cluster(self) -> ClusterFacts:
        """Raises ``BrokerUnavailableError``."""
        described = self._result(
            self._client.describe_cluster(request_timeout=_TIMEOUT_S), "The cluster cannot be described", ""
        )
        return ClusterFacts(len(described.nodes), self._group(self._client_id).broker_version)

    def clock_ms(self) -> int | None:
        """The time of the clock of the cluster's controller, in ms since the epoch; None if it is not available: before
        Kafka 3.3, and without the permission DESCRIBE on the cluster. Raises ``BrokerUnavailableError``. Source:
        KIP-836."""
        try:
            return self._group(self._client_id).cluster_clock_ms(1000 * _TIMEOUT_S)
        except errors.KafkaError as error:
            raise refused(error, "The clock of the cluster cannot be read", self._where) from None

    def describe_topics(self, names: Collection[str] | None = None) -> dict[str, TopicDescription]:
        """``config`` has every setting of the topic, defaults included; it is empty without the permission
        DESCRIBE_CONFIGS. Kafka's own topics are left out."""
        counts = {
            name: count for name, count in self.partition_counts().items() if names is None or name in names
        }
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in counts]
        if not resources:
            return {}
        futures = self._client.describe_configs(resources, request_timeout=_TIMEOUT_S)
        found = {}
        for resource, future in futures.items():
            try:
                config = future.result()
            except KafkaException as exception:
                code = error_of(exception).code()
                if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue  # deleted in between
                if code != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                    raise self._failure(exception, "Topic settings cannot be read", resource.name) from None
                config = {}
            values = {name: entry.value for name, entry in config.items() if entry.value is not None}
            found[resource.name] = TopicDescription(resource.name, counts[resource.name], values)
        return found

    def partition_counts(self) -> dict[str, int]:
        """The partition count of every topic: much less work for the brokers than ``describe_topics``. Kafka's own
        topics are left out."""
        return {name: count for name, count in self._partition_counts().items() if name not in _INTERNAL}

    def partition_racks(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, frozenset[str]]:
        names = sorted({partition.topic for partition in partitions})
        if not names:
            return {}
        futures = self._client.describe_topics(TopicCollection(names), request_timeout=_TIMEOUT_S)
        found: dict[TopicPartition, frozenset[str]] = {}
        for name, future in futures.items():
            try:
                described = future.result().partitions
            except KafkaException as exception:
                what = f"The racks of topic {name!r} cannot be read"
                raise failure(error_of(exception), what, where=self._where, needs="DESCRIBE") from None
            for partition in described:
                racks = [replica.rack for replica in partition.replicas]
                if racks and all(racks):
                    found[TopicPartition(name, partition.id)] = frozenset(racks)
        return found

    def topic_id(self, name: str) -> str | None:
        """Also None if the login may not see the topic, and for brokers before 2.8, which have no topic ids."""
        future = self._client.describe_topics(TopicCollection([name]), request_timeout=_TIMEOUT_S)[name]
        try:
            found = future.result().topic_id
        except KafkaException as exception:
            if error_of(exception).code() in _NOT_TO_BE_SEEN:
                return None
            raise self._failure(exception, "A topic cannot be described", name) from None
        return None if found is None or str(found) == _NO_ID else str(found)

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        """Returns when brokers show the topics, and their leaders accept records; this includes existing topics, which
        another process may have created just now. Also raises ``ConfigError`` for settings that Kafka refuses, and
        ``BrokerUnavailableError``."""
        for batch in _batches(topics):
            self._create_batch(batch)

    def _create_batch(self, topics: Collection[TopicSpec]) -> None:
        wanted = {spec.name: spec for spec in topics}
        futures = self._client.create_topics(
            [
                NewTopic(
                    spec.name,
                    num_partitions=spec.partitions,
                    replication_factor=self._settings.replication_factor,
                    config=dict(spec.config),
                )
                for spec in wanted.values()
            ],
            request_timeout=_TIMEOUT_S,
        )
        for name, future in futures.items():
            try:
                future.result()
            except KafkaException as exception:
                self._not_created(exception, name)
        counts = self._wait_for(lambda counts: wanted.keys() <= counts.keys(), f"topics {', '.join(wanted)}")
        for spec in wanted.values():
            if counts[spec.name] != spec.partitions:
                raise TopicError(
                    f"Topic {spec.name!r} exists with {counts[spec.name]} partitions, not {spec.partitions}",
                    where=self._where,
                    hint="delete it, or choose another name",
                )
        self._wait_for_leaders(wanted.values())

    def _wait_for_leaders(self, topics: Collection[TopicSpec]) -> None:
        """Wait until the leaders of new topics answer. A broker is shown as the leader of a partition before it is
        ready, and records that are sent to it meanwhile may be lost, although their producer is idempotent:
        KAFKA-15591."""
        partitions = [TopicPartition(topic.name, n) for topic in topics for n in range(topic.partitions)]
        why: object = ""
        for remaining_ms in _while_it_spreads():
            try:
                self.end_offsets(partitions, remaining_ms)
            except (TopicError, BrokerUnavailableError) as error:
                # A leader may be the last broker that gets to know a topic, and answer that it does not exist.
                why = error
            else:
                return
        raise BrokerUnavailableError(
            f"Topics {', '.join(topic.name for topic in topics)} cannot be written to",
            where=self._where,
            why=f"not all of their leaders have answered within {_SPREAD_TIMEOUT_S:g} s: {why}",
        )

    def alter_topic_config(self, name: str, config: Mapping[str, str]) -> None:
        """Change these settings and keep the others. Returns when the brokers show them, if the login may see them.
        Raises ``TopicError``, ``ConfigError``."""
        before = self._shown(name, config)
        resource = ConfigResource(
            ResourceType.TOPIC,
            name,
            incremental_configs=[
                ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
                for setting, value in config.items()
            ],
        )
        for future in self._client.incremental_alter_configs([resource], request_timeout=_TIMEOUT_S).values():
            try:
                future.result()
            except KafkaException as exception:
                error = error_of(exception)
                if error.code() == KafkaError.INVALID_CONFIG:
                    raise ConfigError(
                        f"Kafka refuses the settings of topic {name}", where=self._where, why=error.str()
                    ) from None
                raise self._failure(exception, "Topic settings cannot be changed", name) from None
        self._wait_until_shown(name, config, before)

    def _shown(self, name: str, settings: Collection[str]) -> dict[str, str]:
        """The values of some settings of a topic, as the brokers show them."""
        topic = self.describe_topics([name]).get(name)
        return {} if topic is None else {key: topic.config[key] for key in settings if key in topic.config}

    def _wait_until_shown(self, name: str, config: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Wait for the brokers, which learn of the settings a moment after the controller has accepted them."""
        for _ in _while_it_spreads():
            shown = self._shown(name, config)
            # Kafka may show a value in another spelling, such as "compact, delete" without the space: any change
            # counts.
            if all(value == config[key] or value != before.get(key) for key, value in shown.items()):
                return

    def delete_topics(self, names: Collection[str]) -> None:
        """Returns when the topics are deleted. Raises ``TopicError`` if one does not exist."""
        if not names:
            return
        futures = self._client.delete_topics(list(names), request_timeout=_TIMEOUT_S)
        for name, future in futures.items():
            self._result(future, "A topic cannot be deleted", name)
        self._wait_for(
            lambda counts: not counts.keys() & set(names), f"the deletion of topics {', '.join(names)}"
        )

    def require_remaking(self, names: Collection[str]) -> None:
        """Check the login's permissions. It is not checked whether the cluster permits deletion of topics
        (``delete.topic.enable``), because only an attempt shows that."""
        if not names:
            return
        options = {"include_authorized_operations": True, "request_timeout": _TIMEOUT_S}
        topics = self._client.describe_topics(TopicCollection(list(names)), **options)
        cluster = self._result(
            self._client.describe_cluster(**options), "The cluster cannot be described", ""
        )
        for name, future in topics.items():
            allowed = self._result(future, "A topic cannot be described", name).authorized_operations
            if allowed is None:
                continue
            # A login that may create topics anywhere may create this one.
            allowed += cluster.authorized_operations or []
            for operation in (AclOperation.DELETE, AclOperation.CREATE):
                if operation not in allowed:
                    raise failure(
                        KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED),
                        "A topic must be deleted and created again, but the login may not do that",
                        where=f"{self._where}, {name}",
                        needs=operation.name,
                    )

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> Deletion:
        """Start to delete all records before the given offsets."""
        locations = [Location(p.topic, p.partition, offset) for p, offset in offsets.items()]
        begun = self._client.delete_records(locations, request_timeout=_TIMEOUT_S) if locations else {}
        return _Deletion(begun, self._where)

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        return self._offsets(dict.fromkeys(partitions, _EARLIEST), timeout_ms=timeout_ms)

    def end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        return self._offsets(dict.fromkeys(partitions, _LATEST), timeout_ms=timeout_ms)

    def stable_end_offsets(
        self, partitions: Collection[TopicPartition], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, int]:
        """The end offsets for readers of committed records: before the first open transaction."""
        return self._offsets(
            dict.fromkeys(partitions, _LATEST), IsolationLevel.READ_COMMITTED, timeout_ms=timeout_ms
        )

    def offsets_for_times(self, times_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        # Read the ends first: a record that arrives meanwhile lies at or after them.
        ends = self.end_offsets(times_ms.keys())
        found = self._offsets({p: OffsetSpec.for_timestamp(time_ms) for p, time_ms in times_ms.items()})
        return {p: ends[p] if offset < 0 else offset for p, offset in found.items()}

    def group_offsets(
        self, group: str, *, stable: bool = True, timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> dict[TopicPartition, CommittedOffset]:
        try:
            return self._group(group).committed(None, timeout_ms, stable=stable)
        except errors.KafkaError as error:
            raise refused(error, f"The offsets of group {group!r} cannot be read", self._where) from None

    def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        if not offsets:
            return
        try:
            # Without a member id, because the coordinator accepts this only while the group is empty.
            self._group(group).commit(offsets, -1, "", 1000 * _TIMEOUT_S)
        except (errors.UnknownMemberIdError, errors.RebalanceInProgressError, errors.IllegalGenerationError):
            raise self._not_empty(group) from None
        except errors.KafkaError as error:
            raise refused(error, f"The offsets of group {group!r} cannot be set", self._where) from None

    def delete_group(self, group: str) -> None:
        try:
            self._group(group).delete(1000 * _SPREAD_TIMEOUT_S)
        except errors.NonEmptyGroupError:
            raise self._not_empty(group) from None
        except errors.KafkaError as error:
            raise refused(error, "A group cannot be deleted", f"{self._where}, {group}") from None

    def group_members(self, group: str) -> list[str]:
        try:
            return list_member_ids(self._group(group), 1000 * _SPREAD_TIMEOUT_S)
        except errors.KafkaError as error:
            raise refused(error, "A group cannot be described", f"{self._where}, {group}") from None

    def describe_group(self, group: str) -> GroupDescription:
        try:
            return describe_group(self._group(group))
        except errors.KafkaError as error:
            raise refused(error, "A group cannot be described", f"{self._where}, {group}") from None

    def remove_members(self, group: str, members: Collection[MemberName]) -> list[MemberName]:
        connection = self._group(group)
        gone: list[MemberName] = []
        for member in members:
            reason = "the member's process has died"
            try:
                connection.leave(member.member_id, _REMOVE_TIMEOUT_MS, member.instance_id, reason=reason)
                # If the group is of the other kind, the answer is that the member is not known.
                if any(
                    other.member_id == member.member_id for other in streams_group.list_members(connection)
                ):
                    streams_group.remove_member(connection, member.member_id, _REMOVE_TIMEOUT_MS)
            except errors.FencedInstanceIdError:
                continue
            except errors.KafkaError as error:
                raise refused(
                    error,
                    "A member that has died cannot be removed from its group",
                    f"{self._where}, {group}",
                ) from None
            gone.append(member)
        return gone

    def close(self) -> None:
        with self._mutex:
            connections, self._groups = list(self._groups.values()), {}
        for connection in connections:
            connection.close()

    def _group(self, group: str) -> GroupConnection:
        with self._mutex:
            if group not in self._groups:
                self._groups[group] = GroupConnection(self._settings, self._client_id, group, "admin")
            return self._groups[group]

    def _partition_counts(self, timeout_s: float = _TIMEOUT_S) -> dict[str, int]:
        deadline = Deadline(SystemClock(), 1000 * timeout_s)
        while True:
            try:
                topics = self._client.list_topics(timeout=_seconds_left(deadline)).topics
                break
            except KafkaException as exception:
                # A lost connection ends the request at once; the next request waits for a connection.
                if error_of(exception).code() != KafkaError._TRANSPORT or deadline.expired():
                    raise self._failure(exception, "Topics cannot be listed", "") from None
        return {
            name: len(topic.partitions)
            for name, topic in topics.items()
            if topic.error is None and topic.partitions
        }

    def _wait_for(self, spread: Callable[[Mapping[str, int]], bool], what: str) -> dict[str, int]:
        for _ in _while_it_spreads():
            counts = self._partition_counts()
            if spread(counts):
                return counts
        raise BrokerUnavailableError(
            f"The brokers do not agree about {what}",
            where=self._where,
            why=f"not all brokers knew within {_SPREAD_TIMEOUT_S:g} s",
        )

    def _offsets(
        self,
        specs: Mapping[TopicPartition, OffsetSpec],
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: float = ANSWER_TIMEOUT_MS,
    ) -> dict[TopicPartition, int]:
        """Repeat the request for partitions that have no leader yet, or a new one. The timeout grows each time, because
        a frozen leader never answers."""
        found: dict[TopicPartition, int] = {}
        missing = dict(specs)
        deadline = Deadline(SystemClock(), timeout_ms)
        patience_s = _LEADER_TIMEOUT_S
        while missing:
            futures = self._client.list_offsets(
                {Location(p.topic, p.partition): spec for p, spec in missing.items()},
                isolation_level=isolation_level,
                request_timeout=min(patience_s, _seconds_left(deadline)),
            )
            for location, future in futures.items():
                partition = TopicPartition(location.topic, location.partition)
                try:
                    offset = future.result().offset
                except KafkaException as exception:
                    if not is_unavailable(error_of(exception)) or deadline.expired():
                        raise self._failure(exception, "Offsets cannot be listed", str(partition)) from None
                    continue
                if offset != OFFSET_INVALID:
                    found[partition] = offset
                    del missing[partition]
                elif deadline.expired():
                    raise _not_answered(self._where, partition)
            if missing:
                time.sleep(_SPREAD_PAUSE_S)
                self._look_up_leaders(min(patience_s, _seconds_left(deadline)))
                patience_s *= 2
        return {partition: found[partition] for partition in specs}

    def _look_up_leaders(self, timeout_s: float) -> None:
        """Make librdkafka refresh its metadata, because it only asks the leader that it knows. The broker to which it
        sends this request may itself be frozen."""
        try:
            self._partition_counts(timeout_s)
        except BrokerUnavailableError as error:
            log.debug("leaders are not known: %s", error)

    def _result(self, future: Future[T], what: str, which: str) -> T:
        try:
            return future.result()
        except KafkaException as exception:
            raise self._failure(exception, what, which) from None

    def _failure(self, exception: KafkaException, what: str, which: str) -> Exception:
        self._shared.failed(error_of(exception))
        return failure(error_of(exception), what, where=f"{self._where}, {which}" if which else self._where)

    def _not_created(self, exception: KafkaException, name: str) -> None:
        error = error_of(exception)
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if error.code() in {KafkaError.INVALID_CONFIG, KafkaError.POLICY_VIOLATION}:
            raise ConfigError(
                f"Kafka refuses the settings of topic {name}", where=self._where, why=error.str()
            ) from None
        if error.code() in {KafkaError.TOPIC_EXCEPTION, KafkaError.INVALID_PARTITIONS}:
            raise TopicError(
                f"Topic {name!r} cannot be created", where=self._where, why=error.str()
            ) from None
        where = f"{self._where}, {name}"
        raise failure(error, "A topic cannot be created", where=where, needs="CREATE") from None

    def _not_empty(self, group: str) -> BrokerError:
        return has_members(group, self.group_members(group), self._where)


def _not_answered(where: str, partition: TopicPartition) -> BrokerUnavailableError:
    """Librdkafka succeeds without an offset, if the partition's leader was lost meanwhile."""
    return BrokerUnavailableError(
        "Offsets cannot be listed",
        where=f"{where}, {partition}",
        why="the partition's leader has not answered",
        hint="is the broker reachable?",
    )


class _Deletion:
    """See ``port.Deletion``."""

    def __init__(self, begun: Mapping[Location, Future[Any]], where: str) -> None:
        self._begun = begun
        self._where = where

    @property
    def done(self) -> bool:
        return all(future.done() for future in self._begun.values())

    def wait(self) -> None:
        for location, future in self._begun.items():
            partition = f"{location.topic}-{location.partition}"
            try:
                future.result()
            except KafkaException as exception:
                error = error_of(exception)
                if error.code() == KafkaError.OFFSET_OUT_OF_RANGE:
                    raise OffsetOutOfRangeError(
                        f"Records before offset {location.offset} cannot be deleted: the log ends before it",
                        where=f"topic-partition {partition}",
                        why=error.str(),
                    ) from None
                where = f"{self._where}, {partition}"
                raise failure(error, "Records cannot be deleted", where=where, needs="DELETE") from None


def _batches(topics: Collection[TopicSpec]) -> Iterator[list[TopicSpec]]:
    """The topics in batches that one request may create."""
    batch: list[TopicSpec] = []
    records = 0
    for spec in topics:
        needed = 1 + len(spec.config) + spec.partitions
        if batch and records + needed > _NEW_RECORDS_MAX:
            yield batch
            batch, records = [], 0
        batch.append(spec)
        records += needed
    if batch:
        yield batch


def _while_it_spreads() -> Iterator[float]:
    """Yields repeatedly, with pauses, the remaining time (ms) for a change to reach all brokers."""
    deadline = Deadline(SystemClock(), 1000 * _SPREAD_TIMEOUT_S)
    while not deadline.expired():
        yield deadline.remaining_ms()
        time.sleep(_SPREAD_PAUSE_S)


def _seconds_left(deadline: Deadline) -> float:
    """The remaining time as the timeout of a request; never too short for an answer."""
    return max(_REQUEST_TIMEOUT_MIN_S, deadline.remaining_ms() / 1000)
