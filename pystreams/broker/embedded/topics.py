"""The catalogue of topics: names, ids and settings."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pystreams.broker.embedded import topic_config
from pystreams.broker.embedded.database import Database
from pystreams.broker.embedded.topic_config import TopicConfig
from pystreams.broker.port import TopicSpec, why_no_topic_name
from pystreams.errors import TopicError
from pystreams.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic in the log's tables. ``partition_ids[n]`` is the id of partition n; ids are never reused."""

    topic_id: int
    name: str
    partition_ids: tuple[int, ...]
    given_config: Mapping[str, str]
    config: TopicConfig


def load_topics(database: Database, names: Collection[str] | None = None) -> dict[str, Topic]:
    """The existing topics among ``names`` (None: all), by name."""
    ids: dict[tuple[int, str, str], list[int]] = {}
    for topic_id, name, config, partition_id in database.rows(
        "SELECT topic_id, name, config, partition_id FROM topics JOIN partitions USING (topic_id)"
        " WHERE ? OR name IN (SELECT value FROM json_each(?)) ORDER BY name, partition",
        (names is None, json.dumps(list(names or ()))),
    ):
        ids.setdefault((topic_id, name, config), []).append(partition_id)
    topics = {}
    for (topic_id, name, config_json), partition_ids in ids.items():
        given = json.loads(config_json)
        topics[name] = Topic(topic_id, name, tuple(partition_ids), given, topic_config.parse(name, given))
    return topics


def load_topic(database: Database, name: str) -> Topic:
    """The topic. Raises ``TopicError`` if it does not exist."""
    topic = load_topics(database, [name]).get(name)
    if topic is None:
        raise TopicError(
            f"Topic {name!r} does not exist",
            where=f"embedded log {database.path}",
            hint=f"create it: pystreams topics create {name}",
        )
    return topic


def partition_id(database: Database, topic: Topic, partition: int) -> int:
    """The id of a partition. Raises ``TopicError`` if the topic has no such partition."""
    if 0 <= partition < len(topic.partition_ids):
        return topic.partition_ids[partition]
    raise TopicError(
        f"Topic {topic.name!r} has no partition {partition}",
        where=f"embedded log {database.path}",
        why=f"it has {len(topic.partition_ids)} partitions, counted from 0",
        hint="correct the partitioner, or create the topic with more partitions",
    )


def partition_ids(database: Database, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The ids of partitions. Raises ``TopicError`` if one does not exist."""
    topics: dict[str, Topic] = {}
    ids = {}
    for wanted in partitions:
        topic = topics.get(wanted.topic)
        if topic is None:
            topic = topics[wanted.topic] = load_topic(database, wanted.topic)
        ids[wanted] = partition_id(database, topic, wanted.partition)
    return ids


def create_topics(database: Database, specs: Iterable[TopicSpec]) -> None:
    """Create the missing topics, all or none.

    Raises ``TopicError`` for an invalid name, a partition count below 1, or another count than the existing topic's.
    """
    with database.transaction():
        created = [spec for spec in specs if _create(database, spec)]
        if created:
            _bump_version(database)


def alter_config(database: Database, name: str, config: Mapping[str, str]) -> None:
    """Set some of a topic's settings."""
    with database.transaction():
        topic = load_topic(database, name)
        changed = {**topic.given_config, **config}
        topic_config.parse(name, changed)
        database.write(
            "UPDATE topics SET config = ? WHERE topic_id = ?", (json.dumps(changed), topic.topic_id)
        )


def remove_topic(database: Database, name: str) -> None:
    """Delete a topic, its records and the groups' committed offsets for it."""
    with database.transaction():
        topic = load_topic(database, name)
        database.write(
            "DELETE FROM batches WHERE partition_id IN (SELECT partition_id FROM partitions WHERE topic_id = ?)",
            (topic.topic_id,),
        )
        database.write("DELETE FROM partitions WHERE topic_id = ?", (topic.topic_id,))
        database.write("DELETE FROM topics WHERE topic_id = ?", (topic.topic_id,))
        database.write("DELETE FROM group_offsets WHERE topic = ?", (name,))
        _bump_version(database)


def topics_version(database: Database) -> int:
    """A number that changes whenever topics are created or deleted."""
    row = database.row("SELECT value FROM log_properties WHERE name = 'topics_version'")
    assert row is not None
    version: int = row[0]
    return version


def _create(database: Database, spec: TopicSpec) -> bool:
    where = f"embedded log {database.path}"
    illegal = why_no_topic_name(spec.name)
    if illegal:
        raise TopicError(
            f"{spec.name!r} is not a legal topic name",
            where=where,
            why=illegal,
            hint="choose another name",
        )
    existing = load_topics(database, [spec.name]).get(spec.name)
    if existing is not None:
        if len(existing.partition_ids) != spec.partitions:
            raise TopicError(
                f"Topic {spec.name!r} exists with {len(existing.partition_ids)} partitions, not {spec.partitions}",
                where=where,
                hint=f"ask for {len(existing.partition_ids)} partitions, or delete the topic first",
            )
        return False
    if spec.partitions < 1:
        raise TopicError(
            f"Topic {spec.name!r} cannot have {spec.partitions} partitions",
            where=where,
            hint="ask for at least 1",
        )
    config = dict(spec.config)
    topic_config.parse(spec.name, config)
    database.write("INSERT INTO topics (name, config) VALUES (?, ?)", (spec.name, json.dumps(config)))
    database.write_many(
        "INSERT INTO partitions (topic_id, partition) SELECT topic_id, ? FROM topics WHERE name = ?",
        [(partition, spec.name) for partition in range(spec.partitions)],
    )
    return True


def _bump_version(database: Database) -> None:
    database.write("UPDATE log_properties SET value = value + 1 WHERE name = 'topics_version'")
