"""Looks up topics for users: names may be misspelt, and partitions may not exist."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from pystreams.broker.port import Admin, TopicDescription, TopicSpec
from pystreams.errors import ConfigError, TopicError
from pystreams.ids import TopicPartition
from pystreams.nearest import did_you_mean, listing
from pystreams.plural import plural
from pystreams.topology.names import CHANGELOG_SUFFIX, REPARTITION_SUFFIX

_INTERNAL: Final = (
    CHANGELOG_SUFFIX,
    REPARTITION_SUFFIX,
    "-subscription-registration-topic",
    "-subscription-response-topic",
)
#: A topic with this prefix holds the progress of replaying a dead-letter topic. It does not belong to an application,
#: so no reset may delete it.
REPLAYED_PREFIX: Final = "__pystreams-replayed-"
_OF_FOREIGN_KEY_JOIN: Final = re.compile(
    r".+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-[0-9]+-topic"
)


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic as it is now. Offsets are by partition; ``records`` is the number of offsets between them, which on Kafka
    includes transaction markers. ``config`` has the topic's settings by Kafka's names."""

    name: str
    partitions: int
    start_offsets: Mapping[int, int]
    end_offsets: Mapping[int, int]
    config: Mapping[str, str] = field(repr=False)

    @property
    def records(self) -> int:
        return sum(self.end_offsets.values()) - sum(self.start_offsets.values())


def topic_info(admin: Admin, topic: TopicDescription) -> TopicInfo:
    """A topic with its offsets."""
    every = partitions_of(topic)
    starts, ends = admin.beginning_offsets(every), admin.end_offsets(every)
    return TopicInfo(
        topic.name,
        topic.partitions,
        {p.partition: starts[p] for p in every},
        {p.partition: ends[p] for p in every},
        topic.config,
    )


def existing_topic(
    admin: Admin, name: str, where: str, how_to_create: str = "pystreams topics create {}"
) -> TopicDescription:
    """The topic with this name. Raises ``TopicError``, which suggests the nearest name, or ``how_to_create``."""
    topics = admin.describe_topics()
    if name not in topics:
        known = [topic for topic in topics if not is_internal(topic)]
        if is_internal(name):
            create = (
                "an application creates its changelogs and repartition topics itself when it starts, those of windows"
                " with its setting window_changelog_retention_ms"
            )
        else:
            create = f"create it: {how_to_create.format(name)}"
        raise TopicError(
            f"Topic {name} does not exist",
            where=where,
            why=f"its topics: {listing(known)}",
            hint=did_you_mean(name, topics) or create,
        )
    return topics[name]


def create_missing(
    admin: Admin,
    names: Collection[str],
    partitions: int | None,
    config: Mapping[str, str],
    where: str,
    *,
    if_not_exists: bool,
) -> list[str]:
    """Create topics, all or none. Returns the names of the new ones.

    ``partitions`` None: 1 for new topics, and any number for existing ones. Raises ``TopicError`` if a topic exists and
    ``if_not_exists`` is False, or has another partition count than ``partitions``.
    """
    found = admin.describe_topics(names)
    for topic in found.values():
        has = f"{topic.partitions} {plural(topic.partitions, 'partition')}"
        if not if_not_exists:
            raise TopicError(
                f"Topic {topic.name} already exists, with {has}",
                where=where,
                hint=f"look at it: pystreams topics describe {topic.name}",
            )
        if partitions not in (None, topic.partitions):
            raise TopicError(
                f"Topic {topic.name} exists with {has}, not {partitions}",
                where=where,
                hint="leave out the number to use the topic as it is, or first delete it with all its records:"
                f" pystreams topics delete {topic.name}",
            )
    missing = [name for name in dict.fromkeys(names) if name not in found]
    admin.create_topics([TopicSpec(name, partitions or 1, config) for name in missing])
    return missing


def partitions_of(topic: TopicDescription) -> list[TopicPartition]:
    """All partitions, in order."""
    return [TopicPartition(topic.name, partition) for partition in range(topic.partitions)]


def chosen_partitions(topic: TopicDescription, numbers: Collection[int] | None) -> list[TopicPartition]:
    """The partitions with these numbers (None: all), in order. Raises ``ConfigError`` for one that does not exist."""
    for number in numbers or ():
        if number not in range(topic.partitions):
            raise ConfigError(
                f"{topic.name} has no partition {number}", why=f"it has {topic.partitions}, counted from 0"
            )
    return [p for p in partitions_of(topic) if numbers is None or p.partition in numbers]


def is_internal(name: str) -> bool:
    """Whether a topic is internal to an application, judged by its name as Kafka's tools do, or to the command line."""
    return (
        name.endswith(_INTERNAL)
        or name.startswith(REPLAYED_PREFIX)
        or _OF_FOREIGN_KEY_JOIN.fullmatch(name) is not None
    )
