"""All metrics: group, name and meaning of each sample. The page docs/how-to/monitoring.md has the same list.

Groups are those of Kafka Streams, whose JMX beans are named after them. Metrics that Kafka Streams does not have are in
the group ``pystreams``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pystreams.metrics.names import Tags

CLIENT: Final = "stream-metrics"
THREAD: Final = "stream-thread-metrics"
TASK: Final = "stream-task-metrics"
NODE: Final = "stream-processor-node-metrics"
TOPIC: Final = "stream-topic-metrics"
CACHE: Final = "stream-record-cache-metrics"
STATE: Final = "stream-state-metrics"
CONSUMER: Final = "consumer-fetch-manager-metrics"
CONSUMER_CLIENT: Final = "consumer-metrics"
CONSUMER_NODE: Final = "consumer-node-metrics"
PRODUCER_CLIENT: Final = "producer-metrics"
PRODUCER_NODE: Final = "producer-node-metrics"
PRODUCER_TOPIC: Final = "producer-topic-metrics"
#: Not in Kafka Streams.
OWN: Final = "pystreams"

#: Metrics of a client, a thread, a task and a step have one tag more each time.
_LEVELS: Final[Sequence[tuple[frozenset[str], str]]] = (
    (frozenset({"processor_node_id", "topic"}), TOPIC),
    (frozenset({"processor_node_id"}), NODE),
    (frozenset({"record_cache_id"}), CACHE),
    (frozenset({"rocksdb_state_id"}), STATE),
    (frozenset({"rocksdb_window_state_id"}), STATE),
    (frozenset({"rocksdb_session_state_id"}), STATE),
    (frozenset({"in_memory_state_id"}), STATE),
    (frozenset({"in_memory_window_state_id"}), STATE),
    (frozenset({"in_memory_session_state_id"}), STATE),
    (frozenset({"in_memory_lru_state_id"}), STATE),
    (frozenset({"in_memory_suppression_state_id"}), STATE),
    (frozenset({"client_id", "topic", "partition"}), CONSUMER),
    (frozenset({"client_id", "topic"}), PRODUCER_TOPIC),
    (frozenset({"client_id", "node_id"}), PRODUCER_NODE),
    (frozenset({"client_id"}), PRODUCER_CLIENT),
    (frozenset({"task_id"}), TASK),
    (frozenset({"thread_id"}), THREAD),
)

#: The meaning of each sample, by group and name. Times are in ms unless stated otherwise, rates are per second, over
#: the last 30 to 60 seconds.
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
    (TASK, "cache-size-bytes-total"): "bytes of the record caches of a task's stores",
    (TASK, "update-total"): "changelog records that the task's standby has read",
    (TASK, "update-rate"): "changelog records that the task's standby reads per second",
    (
        NODE,
        "record-e2e-latency-avg",
    ): "average age of records when a source or sink has processed them, by their timestamps",
    (NODE, "record-e2e-latency-min"): "least age of a record",
    (NODE, "record-e2e-latency-max"): "greatest age of a record",
    (TOPIC, "records-consumed-total"): "records read from a topic",
    (
        TOPIC,
        "bytes-consumed-total",
    ): "bytes of these records: as the embedded log stores them; on Kafka key, value, headers, topic and 20 each",
    (TOPIC, "records-produced-total"): "records that a sink has written to a topic",
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
    (
        CACHE,
        "hit-ratio-avg",
    ): "share of reads that the cache of a store has answered so far, on average; level DEBUG",
    (CACHE, "hit-ratio-min"): "least of these shares; level DEBUG",
    (CACHE, "hit-ratio-max"): "greatest of these shares; level DEBUG",
    (
        STATE,
        "suppression-buffer-count-avg",
    ): "average number of changes that a suppressed table held back; level DEBUG",
    (STATE, "suppression-buffer-count-max"): "greatest number of changes that it held back; level DEBUG",
    (STATE, "suppression-buffer-size-avg"): "average of their bytes; level DEBUG",
    (STATE, "suppression-buffer-size-max"): "greatest of their bytes; level DEBUG",
    (STATE, "put-rate"): "writes of an entry per second; level DEBUG",
    (STATE, "put-latency-avg"): "average time of these in ns; level DEBUG",
    (STATE, "put-latency-max"): "longest time of these in ns; level DEBUG",
    (STATE, "get-rate"): "reads of an entry of a key-value store per second; level DEBUG",
    (STATE, "get-latency-avg"): "average time of these in ns; level DEBUG",
    (STATE, "get-latency-max"): "longest time of these in ns; level DEBUG",
    (STATE, "fetch-rate"): "reads of one window or session per second; level DEBUG",
    (STATE, "fetch-latency-avg"): "average time of these in ns; level DEBUG",
    (STATE, "fetch-latency-max"): "longest time of these in ns; level DEBUG",
    (STATE, "delete-rate"): "deletions of a key per second; level DEBUG",
    (STATE, "delete-latency-avg"): "average time of these in ns; level DEBUG",
    (STATE, "delete-latency-max"): "longest time of these in ns; level DEBUG",
    (STATE, "remove-rate"): "deletions of a session per second; level DEBUG",
    (STATE, "remove-latency-avg"): "average time of these in ns; level DEBUG",
    (STATE, "remove-latency-max"): "longest time of these in ns; level DEBUG",
    (STATE, "put-if-absent-rate"): "writes that do not replace per second; level DEBUG",
    (STATE, "put-if-absent-latency-avg"): "average time of these in ns; level DEBUG",
    (STATE, "put-if-absent-latency-max"): "longest time of these in ns; level DEBUG",
    (STATE, "put-all-rate"): "writes of several entries per second; level DEBUG",
    (STATE, "put-all-latency-avg"): "average time of these in ns; level DEBUG",
    (STATE, "put-all-latency-max"): "longest time of these in ns; level DEBUG",
    (OWN, "cache-misses-total"): "reads of single entries that were not in a store's record cache",
    (OWN, "cache-reads-total"): "reads of single entries of a store with a record cache; level DEBUG",
    (OWN, "cache-writes-total"): "writes of single entries to a store's record cache",
    (OWN, "cache-size-bytes-total"): "bytes of a store's record cache",
    (OWN, "suppression-buffer-count"): "changes that a suppressed table holds back",
    (OWN, "suppression-buffer-size"): "bytes of the changes that a suppressed table holds back",
    (
        CONSUMER,
        "records-lag",
    ): "unprocessed records of an input partition, by offsets; missing while an input of its task has no known end",
    (CONSUMER, "records-consumed-total"): "records that a consumer has received",
    (CONSUMER, "bytes-consumed-total"): "bytes of these records",
    (CONSUMER, "fetch-throttle-time-avg"): "average delay by quotas of the broker",
    (CONSUMER, "fetch-throttle-time-max"): "longest delay by quotas of the broker",
    (CONSUMER_CLIENT, "connection-count"): "open connections",
    (CONSUMER_CLIENT, "connection-creation-total"): "connections that were opened",
    (CONSUMER_CLIENT, "request-total"): "requests sent",
    (CONSUMER_CLIENT, "response-total"): "responses received",
    (CONSUMER_CLIENT, "outgoing-byte-total"): "bytes sent",
    (CONSUMER_CLIENT, "incoming-byte-total"): "bytes received",
    (PRODUCER_CLIENT, "connection-count"): "open connections",
    (PRODUCER_CLIENT, "connection-creation-total"): "connections that were opened",
    (PRODUCER_CLIENT, "request-total"): "requests sent",
    (PRODUCER_CLIENT, "response-total"): "responses received",
    (PRODUCER_CLIENT, "outgoing-byte-total"): "bytes sent",
    (PRODUCER_CLIENT, "incoming-byte-total"): "bytes received",
    (PRODUCER_CLIENT, "requests-in-flight"): "requests that wait for their responses",
    (PRODUCER_CLIENT, "request-latency-avg"): "average time from a request to its response",
    (PRODUCER_CLIENT, "request-latency-max"): "longest time from a request to its response",
    (PRODUCER_CLIENT, "record-send-total"): "records sent",
    (PRODUCER_CLIENT, "record-queue-time-avg"): "average time of a record in the queue before it is sent",
    (PRODUCER_CLIENT, "record-queue-time-max"): "longest time of a record in the queue before it is sent",
    (PRODUCER_CLIENT, "batch-size-avg"): "average bytes of a batch",
    (PRODUCER_CLIENT, "batch-size-max"): "bytes of the largest batch",
    (PRODUCER_CLIENT, "buffer-total-bytes"): "bytes that the queue may hold",
    (PRODUCER_CLIENT, "buffer-available-bytes"): "bytes for which the queue has room",
    (PRODUCER_CLIENT, "produce-throttle-time-avg"): "average delay by quotas of the broker",
    (PRODUCER_CLIENT, "produce-throttle-time-max"): "longest delay by quotas of the broker",
    (PRODUCER_TOPIC, "record-send-total"): "records sent to a topic",
    (PRODUCER_TOPIC, "byte-total"): "bytes sent to a topic",
    (CONSUMER_NODE, "request-total"): "requests sent to a broker",
    (CONSUMER_NODE, "response-total"): "responses of a broker",
    (CONSUMER_NODE, "outgoing-byte-total"): "bytes sent to a broker",
    (CONSUMER_NODE, "incoming-byte-total"): "bytes received from a broker",
    (CONSUMER_NODE, "request-latency-avg"): "average time from a request to its response",
    (CONSUMER_NODE, "request-latency-max"): "longest time from a request to its response",
    (PRODUCER_NODE, "request-total"): "requests sent to a broker",
    (PRODUCER_NODE, "response-total"): "responses of a broker",
    (PRODUCER_NODE, "outgoing-byte-total"): "bytes sent to a broker",
    (PRODUCER_NODE, "incoming-byte-total"): "bytes received from a broker",
    (PRODUCER_NODE, "request-latency-avg"): "average time from a request to its response",
    (PRODUCER_NODE, "request-latency-max"): "longest time from a request to its response",
    (OWN, "request-retries-total"): "requests of a client of Kafka that were sent again",
    (OWN, "request-errors-total"): "requests of a client of Kafka that could not be sent",
    (OWN, "request-timeouts-total"): "requests of a client of Kafka that were not answered in time",
    (OWN, "requests-in-flight"): "requests of a consumer that wait for their responses",
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
        "step-dropped-records-total",
    ): "records that a step dropped, counted as in `dropped-records-total`; those that failed and were skipped, too",
    (
        OWN,
        "late-records-total",
    ): "records that came too late for a window of a step, or for records of the other stream of a join, each once",
    (OWN, "late-records-lateness-max-ms"): "the worst lateness of these records",
    (OWN, "late-records-grace-needed-max-ms"): "the grace with which none of them would have been too late",
    (OWN, "unmatched-records-total"): "records of a stream for which a join with a table found no row",
    (OWN, "lagging-tasks"): "tasks of the group that stream time waits for",
    (OWN, "lagging-tasks-given-up"): "tasks of the group that stream time no longer waits for",
    (OWN, "snapshot-total"): "snapshots of stores taken",
    (OWN, "snapshot-copied-bytes-total"): "bytes of snapshots copied",
    (OWN, "snapshot-used-total"): "tasks that began with a snapshot",
    (OWN, "worker-restarts-total"): "how often the process of a worker was started again",
}


#: The groups of a consumer, by those that a producer has at the same level.
_OF_CONSUMERS: Final = {PRODUCER_NODE: (CONSUMER_NODE,), PRODUCER_CLIENT: (CONSUMER_CLIENT, CONSUMER)}


def group_of(name: str, tags: Tags) -> str:
    """The group of a sample; empty for the metrics of a program."""
    level = _LEVELS[_place(tags)][1] if rank_of(tags) else CLIENT
    groups: tuple[str, ...] = (level,)
    if level in _OF_CONSUMERS and any(
        tag == "client_id" and text.endswith("-consumer") for tag, text in tags
    ):
        groups = _OF_CONSUMERS[level]
    for group in (*groups, OWN):
        if (group, name) in MEANINGS:
            return group
    return ""


def rank_of(tags: Tags) -> int:
    """The level of a metric with these tags: 0 for a client, higher for threads, tasks and steps."""
    return len(_LEVELS) - _place(tags)


def _place(tags: Tags) -> int:
    given = {name for name, _ in tags}
    return next((place for place, (level, _) in enumerate(_LEVELS) if level <= given), len(_LEVELS))
