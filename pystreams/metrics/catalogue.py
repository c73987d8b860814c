"""The metrics that there are: group, name and meaning of each sample. The page docs/how-to/monitoring.md has the same.

Groups are those of Kafka Streams, whose JMX beans are named after them. What Kafka Streams does not have is in a group
of its own, ``pystreams``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pystreams.metrics.names import Tags

CLIENT: Final = "stream-metrics"
THREAD: Final = "stream-thread-metrics"
TASK: Final = "stream-task-metrics"
CONSUMER: Final = "consumer-fetch-manager-metrics"
STATE: Final = "stream-state-metrics"
#: Not in Kafka Streams.
OWN: Final = "pystreams"

#: What is measured per client, thread, task and step has a tag more each time.
_LEVELS: Final = (
    ("processor_node_id", "stream-processor-node-metrics"),
    ("record_cache_id", "stream-record-cache-metrics"),
    ("rocksdb_state_id", STATE),
    ("rocksdb_window_state_id", STATE),
    ("rocksdb_session_state_id", STATE),
    ("in_memory_suppression_state_id", STATE),
    ("topic", CONSUMER),
    ("task_id", TASK),
    ("thread_id", THREAD),
)

#: What each sample means, by group and name. Times are in ms, rates per second, of the last 30 to 60 seconds.
MEANINGS: Final[Mapping[tuple[str, str], str]] = {
    (CLIENT, "client-state"): "0 created, 1 rebalancing, 2 running, 3 and 5 closing, 4 closed, 6 failed",
    (CLIENT, "alive-stream-threads"): "stream threads that work",
    (CLIENT, "failed-stream-threads"): "stream threads that an error has ended",
    (
        THREAD,
        "thread-state",
    ): "0 created, 1 starting, 2 and 3 rebalancing or restoring, 4 running, 5 closing, 6 ended",
    (THREAD, "poll-total"): "polls for records",
    (THREAD, "poll-rate"): "polls for records per second",
    (THREAD, "poll-latency-avg"): "average time of a poll, with its wait for records",
    (THREAD, "poll-latency-max"): "longest time of a poll",
    (THREAD, "poll-ratio"): "share of the time in polls, most of which is waiting",
    (THREAD, "poll-records-avg"): "average number of records that a poll returned, if it returned any",
    (THREAD, "poll-records-max"): "greatest number of records that a poll returned",
    (
        THREAD,
        "process-total",
    ): "records processed, also those that could not be read; not those of a round that an error ended",
    (THREAD, "process-rate"): "records processed per second",
    (THREAD, "process-latency-avg"): "average time of processing a record",
    (THREAD, "process-latency-max"): "longest average time of processing a record of one round",
    (THREAD, "process-ratio"): "share of the time in processing",
    (THREAD, "process-records-avg"): "average number of records processed in a round",
    (THREAD, "process-records-max"): "greatest number of records processed in a round",
    (THREAD, "punctuate-total"): "wall-clock punctuators called",
    (THREAD, "punctuate-rate"): "wall-clock punctuators called per second",
    (THREAD, "punctuate-latency-avg"): "average time of a call of a wall-clock punctuator",
    (THREAD, "punctuate-latency-max"): "longest average time of the calls of one round",
    (THREAD, "punctuate-ratio"): "share of the time in wall-clock punctuators",
    (THREAD, "commit-total"): "commits",
    (THREAD, "commit-rate"): "commits per second",
    (THREAD, "commit-latency-avg"): "average time of a commit",
    (THREAD, "commit-latency-max"): "longest time of a commit",
    (THREAD, "commit-ratio"): "share of the time in commits",
    (THREAD, "task-created-total"): "tasks opened",
    (THREAD, "task-created-rate"): "tasks opened per second",
    (THREAD, "task-closed-total"): "tasks closed",
    (THREAD, "task-closed-rate"): "tasks closed per second",
    (
        TASK,
        "process-total",
    ): "records processed; not those that could not be read, nor those of a turn that an error ended",
    (TASK, "process-rate"): "records processed per second",
    (TASK, "process-latency-avg"): "average time of processing a record",
    (TASK, "process-latency-max"): "longest average time of processing a record of one round",
    (TASK, "punctuate-total"): "punctuators called",
    (TASK, "punctuate-rate"): "punctuators called per second",
    (
        TASK,
        "dropped-records-total",
    ): "records that steps dropped; as in Java, once for each window that has closed",
    (TASK, "dropped-records-rate"): "the same per second",
    (TASK, "restore-total"): "changelog records restored before the task ran",
    (TASK, "restore-rate"): "changelog records restored per second",
    (TASK, "restore-remaining-records-total"): "changelog records left to restore",
    (TASK, "update-total"): "changelog records that the task's standby has read",
    (TASK, "update-rate"): "changelog records that the task's standby reads per second",
    (STATE, "num-entries-active-mem-table"): "entries in the active memtable of RocksDB",
    (STATE, "num-deletes-active-mem-table"): "deletions in the active memtable",
    (STATE, "num-entries-imm-mem-tables"): "entries in memtables that wait to be written to files",
    (STATE, "num-deletes-imm-mem-tables"): "deletions in memtables that wait to be written to files",
    (STATE, "num-immutable-mem-table"): "memtables that wait to be written to files",
    (STATE, "cur-size-active-mem-table"): "bytes of the active memtable",
    (STATE, "cur-size-all-mem-tables"): "bytes of the active memtable and of those that wait",
    (STATE, "size-all-mem-tables"): "bytes of all memtables, also of those that readers still hold",
    (STATE, "mem-table-flush-pending"): "1 if a memtable waits to be written to a file",
    (STATE, "num-running-flushes"): "memtables that are being written to files",
    (STATE, "compaction-pending"): "1 if a compaction waits",
    (STATE, "num-running-compactions"): "compactions that run",
    (STATE, "estimate-pending-compaction-bytes"): "bytes that compactions have to rewrite",
    (STATE, "total-sst-files-size"): "bytes of all files",
    (STATE, "live-sst-files-size"): "bytes of the files of the latest version",
    (STATE, "num-live-versions"): "versions of the list of files that are in use",
    (
        STATE,
        "block-cache-capacity",
    ): "bytes that the block cache may hold, which all stores of a process share",
    (STATE, "block-cache-usage"): "bytes that the block cache holds",
    (STATE, "block-cache-pinned-usage"): "bytes of the block cache that are in use",
    (STATE, "estimate-num-keys"): "entries of the store, estimated",
    (
        STATE,
        "estimate-table-readers-mem",
    ): "bytes of indexes and filters outside of the block cache, estimated",
    (STATE, "background-errors"): "errors of flushes and compactions",
    (OWN, "cache-misses-total"): "reads of single entries that were not in a store's record cache",
    (OWN, "cache-writes-total"): "writes of single entries to a store's record cache",
    (OWN, "cache-size-bytes-total"): "bytes of a store's record cache; in Java of a task's",
    (OWN, "suppression-buffer-count"): "changes that a suppressed table holds back",
    (OWN, "suppression-buffer-size"): "bytes of the changes that a suppressed table holds back",
    (
        CONSUMER,
        "records-lag",
    ): "unprocessed records of an input partition, by offsets; missing while an input of its task has no known end",
    (OWN, "tasks"): "tasks that the thread runs or restores",
    (OWN, "standbys"): "standby tasks of the thread",
    (OWN, "standby-lag"): "changelog records that a standby lacks",
    (OWN, "paused-tasks"): "tasks that pause because they are too far ahead of one that lags",
    (OWN, "rebalance-total"): "assignments of the group that the thread has carried out",
    (OWN, "rebalance-pause-avg"): "average time from an assignment until all tasks of the thread run",
    (OWN, "rebalance-pause-max"): "longest time from an assignment until all tasks of the thread run",
    (OWN, "buffered-records"): "records that were read and wait to be processed",
    (OWN, "stream-time-ms"): "stream time of the task, in ms since the epoch",
    (OWN, "dead-letters-total"): "records that were written to the dead-letter topic",
    (
        OWN,
        "late-records-total",
    ): "records that a step dropped because they came too late for a window, each once",
    (OWN, "late-records-lateness-max-ms"): "the worst lateness of a record that was dropped",
    (OWN, "late-records-grace-needed-max-ms"): "the grace that would have kept all records that were dropped",
    (OWN, "lagging-tasks"): "tasks of the group that stream time waits for",
    (OWN, "lagging-tasks-given-up"): "tasks of the group that stream time no longer waits for",
    (OWN, "snapshot-total"): "snapshots of stores taken",
    (OWN, "snapshot-copied-bytes-total"): "bytes of snapshots copied",
    (OWN, "snapshot-used-total"): "tasks that began with a snapshot",
    (OWN, "worker-restarts-total"): "how often the process of a worker was started again",
}


def group_of(name: str, tags: Tags) -> str:
    """The group of a sample; empty for the metrics of a program."""
    level = _LEVELS[_place(tags)][1] if rank_of(tags) else CLIENT
    for group in (level, OWN):
        if (group, name) in MEANINGS:
            return group
    return ""


def rank_of(tags: Tags) -> int:
    """How fine what has these tags is: 0 for a client, more for threads, tasks and steps."""
    return len(_LEVELS) - _place(tags)


def _place(tags: Tags) -> int:
    given = {name for name, _ in tags}
    return next((place for place, (tag, _) in enumerate(_LEVELS) if tag in given), len(_LEVELS))
