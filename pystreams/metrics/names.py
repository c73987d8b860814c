"""Names of metrics: those of Kafka Streams are the same, so that dashboards for Java applications fit.

Tags: ``thread_id`` and ``task_id`` (``0_1``), where the metric's group has them.
Source: org.apache.kafka.streams.processor.internals.metrics.
"""

from __future__ import annotations

from typing import Final

# Per task.
DROPPED_RECORDS: Final = "dropped-records-total"
PROCESSED: Final = "process-total"
PUNCTUATED: Final = "punctuate-total"
# Changelog records that were restored before the task ran, and that its standby has read; what is left to restore.
RESTORED: Final = "restore-total"
UPDATED: Final = "update-total"
RESTORE_REMAINING: Final = "restore-remaining-records-total"

# Per task, and not in Kafka Streams: the changelog offsets that a standby lacks.
STANDBY_LAG: Final = "standby-lag"

# Of pystreams alone: the records that a step (``processor_node_id``) of a task has dropped because they were too late
# for a window, the worst lateness, and the grace that would have kept them all.
LATE_RECORDS: Final = "late-records-total"
LATENESS_MAX: Final = "late-records-lateness-max-ms"
GRACE_NEEDED_MAX: Final = "late-records-grace-needed-max-ms"

# Per thread.
POLLED: Final = "poll-total"
COMMITTED: Final = "commit-total"
TASKS_CREATED: Final = "task-created-total"
TASKS_CLOSED: Final = "task-closed-total"

# Per client.
ALIVE_STREAM_THREADS: Final = "alive-stream-threads"
FAILED_STREAM_THREADS: Final = "failed-stream-threads"

# Per client, and not in Kafka Streams: the group's tasks that stream time waits for, and that it no longer waits for.
LAGGING_TASKS: Final = "lagging-tasks"
LAGGING_TASKS_GIVEN_UP: Final = "lagging-tasks-given-up"

# Per client, and not in Kafka Streams: snapshots of tasks' stores that were written, the bytes of them that had to be
# copied, and the tasks that have begun with a snapshot.
SNAPSHOTS_TAKEN: Final = "snapshot-total"
SNAPSHOT_BYTES_COPIED: Final = "snapshot-copied-bytes-total"
SNAPSHOTS_USED: Final = "snapshot-used-total"

# Per thread, and not in Kafka Streams: its tasks that pause because they are too far ahead of one that lags.
PAUSED_TASKS: Final = "paused-tasks"
