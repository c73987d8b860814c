"""The topics of an application at start: those of the user must exist, its own are created or verified.

Source: org.apache.kafka.streams.processor.internals.{InternalTopicManager,RepartitionTopics,ChangelogTopics} and the
``...TopicConfig`` classes for the settings.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pystreams.broker.port import Admin, TopicDescription, TopicSpec, retention_of
from pystreams.config import StreamsConfig
from pystreams.errors import TopicError
from pystreams.nearest import did_you_mean
from pystreams.state.spec import EXPIRING_KINDS, StoreSpec
from pystreams.topics.users_topics import users_topics
from pystreams.topology.built import BuiltTopology
from pystreams.topology.partitions import Partitioning, resolve_partitions

log = logging.getLogger(__name__)

_COMMON = {"message.timestamp.type": "CreateTime"}
_REPARTITION = {**_COMMON, "cleanup.policy": "delete", "segment.bytes": "52428800", "retention.ms": "-1"}
#: The greatest value of a topic setting: an int64.
LONGEST_MS = 0x7FFFFFFFFFFFFFFF
#: Versions must stay in the changelog longer than in the store. Source: VersionedChangelogTopicConfig.
_COMPACTION_LAG_MORE_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """The tasks, the partition counts of all existing topics, the topics that the application writes to, and its
    internal topics that must be created."""

    partitioning: Partitioning
    existing: Mapping[str, int]
    found: Mapping[str, TopicDescription]
    missing: Sequence[TopicSpec]

    @property
    def partition_counts(self) -> dict[str, int]:
        return {**self.existing, **{topic.name: topic.partitions for topic in self.missing}}

    def config(self, topic: str) -> Mapping[str, str]:
        """The settings that a topic has or will have."""
        if topic in self.found:
            return self.found[topic].config
        return next((spec.config for spec in self.missing if spec.name == topic), {})


def plan_topics(
    admin: Admin,
    built: BuiltTopology,
    config: StreamsConfig,
    where: str,
    made_anew: Collection[str] = (),
) -> TopicPlan:
    """Check the user's topics, and the application's own topics that exist; nothing is created yet. Topics that are
    going to be ``made_anew`` count as missing.

    Raises ``TopicError``, ``TopologyError``.
    """
    existing = admin.partition_counts()
    _check_users_topics(built, existing, config, where)
    partitioning = resolve_partitions(built, existing)
    specs = internal_topics(built, partitioning, config)
    # Describe only these topics, because a cluster may have thousands of others.
    own = {spec.name for spec in specs} - set(made_anew)
    found = admin.describe_topics(own | _written(built, config))
    unseen = sorted(name for name, topic in found.items() if not topic.config)
    if unseen:
        log.warning(
            "the settings of %s are not checked, because this application may not see them (DESCRIBE_CONFIGS)",
            ", ".join(unseen),
        )
    for spec in specs:
        if spec.name in found:
            _verify(spec, found[spec.name], where)
    return TopicPlan(partitioning, existing, found, [spec for spec in specs if spec.name not in found])


def _written(built: BuiltTopology, config: StreamsConfig) -> set[str]:
    """The topics that the application writes to, except changelogs."""
    written = {topic for sub in built.subtopologies for topic in sub.sink_topics}
    if config.errors_dead_letter_queue_topic_name is not None:
        written.add(config.errors_dead_letter_queue_topic_name)
    return written


def internal_topics(
    built: BuiltTopology, partitioning: Partitioning, config: StreamsConfig
) -> list[TopicSpec]:
    """The application's own topics with their settings: the library's, overridden by ``topic.*`` settings of the
    application, overridden by those of the store."""
    everywhere = {name: str(value) for name, value in config.topic_config.items()}
    specs = [
        TopicSpec(name, partitions, {**_REPARTITION, **everywhere})
        for name, partitions in partitioning.repartition_topics.items()
    ]
    for sub in built.subtopologies:
        for store in sub.stores:
            topic = sub.changelogs.get(store.name)
            if topic is not None:
                settings = _changelog_settings(store, everywhere, config)
                specs.append(TopicSpec(topic, partitioning.changelog_topics[topic], settings))
    return specs


def _changelog_settings(
    store: StoreSpec, everywhere: Mapping[str, str], config: StreamsConfig
) -> dict[str, str]:
    if store.history_ms is not None:
        lag = min(store.history_ms + _COMPACTION_LAG_MORE_MS, LONGEST_MS)
        computed = {"min.compaction.lag.ms": str(lag)}
        policy = {"cleanup.policy": "compact"}
        return {**_COMMON, **policy, **everywhere, **computed, **store.changelog_config}
    if store.kind not in EXPIRING_KINDS:
        return {**_COMMON, "cleanup.policy": "compact", **everywhere, **store.changelog_config}
    settings = {**_COMMON, "cleanup.policy": "compact,delete", **everywhere, **store.changelog_config}
    if "retention.ms" not in store.changelog_config:
        retention = config.window_changelog_retention_ms
        if retention is None:
            retention = store.retention_ms + config.windowstore_changelog_additional_retention_ms
            retention = min(retention, LONGEST_MS)
        settings["retention.ms"] = str(retention)
    return settings


def _check_users_topics(
    built: BuiltTopology, existing: Collection[str], config: StreamsConfig, where: str
) -> None:
    topics = users_topics(built, config)
    missing = sorted(topics.used - set(existing))
    if not missing:
        return
    uses = [f"{topic} ({'read' if topic in topics.read else 'written'})" for topic in missing]
    meant = _meant(missing, set(existing) - topics.used)
    it = "it" if len(missing) == 1 else "them"
    command = f"pystreams topics create {' '.join(missing)}"
    if config.on_kafka:
        command += f" --bootstrap-servers {config.bootstrap_servers}"
    raise TopicError(
        f"{'a topic does' if len(missing) == 1 else 'topics do'} not exist: {', '.join(uses)}",
        where=f"application {built.application_id}, {where}",
        why="only the application's own topics (repartition, changelog) are created at start",
        hint=f"{meant}create {it} (--partitions sets the number of partitions): {command};"
        " `pystreams run --create-topics` does it, for development",
    )


def _meant(missing: Sequence[str], others: Collection[str]) -> str:
    """A suggestion for each missing topic that resembles one of the ``others``, which the program does not name."""
    near = {topic: did_you_mean(topic, others) for topic in missing}
    if len(missing) == 1:
        questions = list(filter(None, near.values()))
    else:
        questions = [f"{topic}: {question}" for topic, question in near.items() if question]
    return f"{'; '.join(questions)}; or " if questions else ""


def _verify(spec: TopicSpec, found: TopicDescription, where: str) -> None:
    if found.partitions != spec.partitions:
        raise TopicError(
            f"internal topic {spec.name} has {found.partitions} partitions, but the topology needs {spec.partitions}",
            where=where,
            why="it was created for inputs with another number of partitions, or for another topology",
            hint="create the inputs with their former number of partitions, or start again from the beginning with a "
            "new application_id or with pystreams reset",
        )
    if not found.config:
        return
    wanted, policy = spec.config["cleanup.policy"], found.config.get("cleanup.policy", "delete")
    loss = _loss(set(wanted.split(",")), set(policy.split(",")))
    if loss:
        raise TopicError(
            f"internal topic {spec.name} has cleanup.policy={policy}, so it would lose {loss}",
            where=where,
            why=f"the topology needs cleanup.policy={wanted}",
            hint=f"pystreams topics alter {spec.name} --config cleanup.policy={wanted}",
        )


def _loss(wanted: set[str], found: set[str]) -> str:
    """The records that a topic would lose by a wrong cleanup policy; empty if it only keeps too much."""
    if "compact" in wanted and found not in (wanted, {"compact"}):
        return "state"
    return "records that are not processed yet" if "compact" in found - wanted else ""


def written_topics(built: BuiltTopology, dead_letter_topic: str | None) -> frozenset[str]:
    """All topics to which tasks write, as far as their names do not depend on the records."""
    written = {topic for sub in built.subtopologies for topic in (*sub.sink_topics, *sub.changelogs.values())}
    return frozenset(written if dead_letter_topic is None else written | {dead_letter_topic})


def time_limits(plan: TopicPlan, built: BuiltTopology, dead_letter_topic: str | None) -> dict[str, int]:
    """The retention in ms of every output and changelog that deletes by the records' timestamps. Dead letters have
    their records' timestamps, too."""
    limits: dict[str, int] = {}
    for topic in sorted(written_topics(built, dead_letter_topic)):
        limit = retention_of(plan.config(topic))
        if limit is not None:
            limits[topic] = limit
    return limits
