"""The tables of the embedded log: an SQLite file that anyone may open with ``sqlite3`` (reading is always safe).

topics              one row per topic; ``config`` is JSON, Kafka's topic settings that were given explicitly
partitions          one row per partition. ``start_offset``: the first readable offset. ``end_offset``: exclusive, the
                    offset of the next record. ``clean_offset``: everything before it has been compacted.
                    ``byte_count``: bytes of its batches.
batches             one row per batch of records of one partition, in offset order. ``columns`` is a msgpack array
                    ``[keys, values, timestamps, offsets, headers]`` of parallel columns (see ``columns.py``);
                    offsets is nil if they are ``base_offset, base_offset + 1, ...``, headers is nil if no record has
                    any. ``last_offset`` is inclusive. ``max_timestamp``: latest event time (ms). ``appended_ms``:
                    wall-clock time; for a compacted batch the time of its first compaction or later.
consumer_groups     one row per group. ``epoch`` counts the reasons for a new assignment (a member joined, left, asked);
                    ``assigned_epoch`` is the epoch of the current targets; ``generation`` counts
                    assignments; ``assigned_topics`` is JSON, the partition counts that the assignor saw.
group_offsets       committed offsets: the next offset to process, with Java's offset metadata
members             one row per member. ``lock_file`` (in the directory ``<log>.locks``) is locked by the member's
                    process while it lives; ``heartbeat_ms`` is the machine's monotonic clock; ``locked`` is 0 for a
                    member that stopped without leaving, which stays until its session times out. ``user_data`` is its
                    last message to the assignor, ``plan`` the assignor's last message to it.
target_partitions   the member to which each partition is assigned
claimed_partitions  the member that holds a partition: at most one, by the primary key
log_properties      ``topics_version`` counts changes of the topics; ``log_id`` identifies this log

Offsets in ``batches`` of one partition never overlap. A partition without compaction has no holes between
``start_offset`` and ``end_offset``.
"""

from __future__ import annotations

#: ``PRAGMA application_id`` of the file: "pyst".
APPLICATION_ID = 0x70797374

#: ``PRAGMA user_version``: raised with every change of the tables that older code cannot read.
SCHEMA_VERSION = 1

TABLES = """
CREATE TABLE topics (
    topic_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL
);
CREATE TABLE partitions (
    partition_id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic_id INTEGER NOT NULL REFERENCES topics,
    partition INTEGER NOT NULL,
    start_offset INTEGER NOT NULL DEFAULT 0,
    end_offset INTEGER NOT NULL DEFAULT 0,
    clean_offset INTEGER NOT NULL DEFAULT 0,
    byte_count INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic_id, partition)
);
CREATE TABLE batches (
    batch_id INTEGER PRIMARY KEY,
    partition_id INTEGER NOT NULL REFERENCES partitions,
    base_offset INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    record_count INTEGER NOT NULL,
    byte_count INTEGER NOT NULL,
    max_timestamp INTEGER NOT NULL,
    appended_ms INTEGER NOT NULL,
    columns BLOB NOT NULL,
    UNIQUE (partition_id, base_offset)
);
CREATE TABLE consumer_groups (
    group_id TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL DEFAULT 0,
    assigned_epoch INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    assigned_topics TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE group_offsets (
    group_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    committed_offset INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    PRIMARY KEY (group_id, topic, partition)
);
CREATE TABLE members (
    member_id TEXT PRIMARY KEY,
    group_id TEXT NOT NULL REFERENCES consumer_groups,
    lock_file TEXT NOT NULL,
    locked INTEGER NOT NULL DEFAULT 1,
    session_timeout_ms INTEGER NOT NULL,
    heartbeat_ms INTEGER NOT NULL,
    topics TEXT NOT NULL,
    user_data BLOB NOT NULL,
    plan BLOB NOT NULL DEFAULT x''
);
CREATE INDEX members_by_group ON members (group_id);
CREATE TABLE target_partitions (
    group_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    member_id TEXT NOT NULL REFERENCES members,
    PRIMARY KEY (group_id, topic, partition)
);
CREATE TABLE claimed_partitions (
    group_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    member_id TEXT NOT NULL REFERENCES members,
    PRIMARY KEY (group_id, topic, partition)
);
CREATE TABLE log_properties (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO log_properties VALUES ('topics_version', 0);
"""
