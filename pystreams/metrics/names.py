"""Names of metrics: those of Kafka Streams are the same, so that dashboards for Java applications fit.

Tags: ``thread_id`` and ``task_id`` (``0_1``), where the metric's group has them. Names of measures lack the suffixes
``-avg`` and ``-max``.
Source: org.apache.kafka.streams.processor.internals.metrics.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Tags: TypeAlias = tuple[tuple[str, str], ...]

# Per thread and per task.
PROCESS_LATENCY: Final = "process-latency"

# Per task.
DROPPED_RECORDS: Final = "dropped-records-total"
# Not in Kafka Streams: the records that were written to the dead-letter topic.
DEAD_LETTERS: Final = "dead-letters-total"
# Also per thread.
PROCESSED: Final = "process-total"
PUNCTUATED: Final = "punctuate-total"
# Changelog records that were restored before the task ran, and that its standby has read; what is left to restore.
RESTORED: Final = "restore-total"
UPDATED: Final = "update-total"
RESTORE_REMAINING: Final = "restore-remaining-records-total"

# Per task, and not in Kafka Streams: the changelog offsets that a standby lacks.
STANDBY_LAG: Final = "standby-lag"

# Of pystreams alone: the dropped records of a task, by step (``processor_node_id``). It has a name of its own, because
# not all dropped records are those of a step: some writes that a store refuses are not.
STEP_DROPPED_RECORDS: Final = "step-dropped-records-total"

# Of pystreams alone: the records of a step (``processor_node_id``) of a task that were too late for a window, or for
# records of the other stream of a join, the worst lateness, and the grace that would have kept them all.
LATE_RECORDS: Final = "late-records-total"
LATENESS_MAX: Final = "late-records-lateness-max-ms"
GRACE_NEEDED_MAX: Final = "late-records-grace-needed-max-ms"

# Of pystreams alone: the records that a join (``processor_node_id``) of a stream with a table has found no row for.
UNMATCHED_RECORDS: Final = "unmatched-records-total"

# Per source and topic, and per sink and topic (``processor_node_id``, ``topic``): records and, of sources, their bytes.
RECORDS_CONSUMED: Final = "records-consumed-total"
BYTES_CONSUMED: Final = "bytes-consumed-total"
RECORDS_PRODUCED: Final = "records-produced-total"

# Per source and sink (``processor_node_id``): how old records are when they were processed or written.
RECORD_AGE: Final = "record-e2e-latency"

# Per thread.
POLLED: Final = "poll-total"
POLL_LATENCY: Final = "poll-latency"
POLL_RATIO: Final = "poll-ratio"
POLL_RECORDS: Final = "poll-records"
PROCESS_RATIO: Final = "process-ratio"
PROCESS_RECORDS: Final = "process-records"
PUNCTUATE_LATENCY: Final = "punctuate-latency"
PUNCTUATE_RATIO: Final = "punctuate-ratio"
COMMITTED: Final = "commit-total"
COMMIT_LATENCY: Final = "commit-latency"
COMMIT_RATIO: Final = "commit-ratio"
TASKS_CREATED: Final = "task-created-total"
TASKS_CLOSED: Final = "task-closed-total"
THREAD_STATE: Final = "thread-state"

# Per thread, and not in Kafka Streams: rebalances, and the time from each until all tasks run; the thread's tasks
# and standbys.
REBALANCES: Final = "rebalance-total"
REBALANCE_PAUSE: Final = "rebalance-pause"
TASKS: Final = "tasks"
STANDBYS: Final = "standbys"

# Per task, and not in Kafka Streams: records that were read and wait, and stream time.
BUFFERED_RECORDS: Final = "buffered-records"
STREAM_TIME: Final = "stream-time-ms"

# Per store with a cache, and not in Kafka Streams, which has the size of a task's caches, and the ratio of hits.
CACHE_MISSES: Final = "cache-misses-total"
CACHE_WRITES: Final = "cache-writes-total"
CACHE_SIZE: Final = "cache-size-bytes-total"

# Per store with a cache, at the recording level DEBUG.
CACHE_READS: Final = "cache-reads-total"
HIT_RATIO: Final = "hit-ratio"

# Per buffer of a suppressed table, as of now. Kafka Streams has averages and maxima of both.
BUFFER_COUNT: Final = "suppression-buffer-count"
BUFFER_SIZE: Final = "suppression-buffer-size"

# Per input partition (``client_id`` is the consumer's).
RECORDS_LAG: Final = "records-lag"

# Per client of Kafka (``client_id`` is the consumer's or producer's), from librdkafka's statistics; some also per
# broker (``node_id``), and of producers per ``topic``.
CONNECTIONS: Final = "connection-count"
CONNECTIONS_MADE: Final = "connection-creation-total"
REQUESTS: Final = "request-total"
RESPONSES: Final = "response-total"
BYTES_OUT: Final = "outgoing-byte-total"
BYTES_IN: Final = "incoming-byte-total"
REQUEST_LATENCY: Final = "request-latency"
REQUESTS_IN_FLIGHT: Final = "requests-in-flight"
PRODUCE_THROTTLE: Final = "produce-throttle-time"
FETCH_THROTTLE: Final = "fetch-throttle-time"
RECORDS_SENT: Final = "record-send-total"
BYTES_SENT: Final = "byte-total"
RECORD_QUEUE_TIME: Final = "record-queue-time"
BATCH_SIZE: Final = "batch-size"
BUFFER_TOTAL: Final = "buffer-total-bytes"
BUFFER_AVAILABLE: Final = "buffer-available-bytes"
# Not in Java's clients.
REQUEST_RETRIES: Final = "request-retries-total"
REQUEST_ERRORS: Final = "request-errors-total"
REQUEST_TIMEOUTS: Final = "request-timeouts-total"

# Per client.
ALIVE_STREAM_THREADS: Final = "alive-stream-threads"
FAILED_STREAM_THREADS: Final = "failed-stream-threads"
CLIENT_STATE: Final = "client-state"

# Per client, and not in Kafka Streams: the group's tasks that stream time waits for, and that it no longer waits for.
LAGGING_TASKS: Final = "lagging-tasks"
LAGGING_TASKS_GIVEN_UP: Final = "lagging-tasks-given-up"

# Per client, and not in Kafka Streams: snapshots of tasks' stores that were written, the bytes of them that had to be
# copied, and the tasks that have begun with a snapshot.
SNAPSHOTS_TAKEN: Final = "snapshot-total"
SNAPSHOT_BYTES_COPIED: Final = "snapshot-copied-bytes-total"
SNAPSHOTS_USED: Final = "snapshot-used-total"

# Per worker of a supervisor, and not in Kafka Streams: how often its process was started again.
WORKER_RESTARTS: Final = "worker-restarts-total"

# Per thread, and not in Kafka Streams: its tasks that pause because they are too far ahead of one that lags.
PAUSED_TASKS: Final = "paused-tasks"

#: The measures that also have a minimum.
WITH_MINIMUM: Final = frozenset({RECORD_AGE, HIT_RATIO})

#: The counters that also have a rate.
WITH_RATE: Final = frozenset(
    {
        DROPPED_RECORDS,
        PROCESSED,
        PUNCTUATED,
        RESTORED,
        UPDATED,
        POLLED,
        COMMITTED,
        TASKS_CREATED,
        TASKS_CLOSED,
    }
)
