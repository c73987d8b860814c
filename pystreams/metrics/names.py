"""Names of metrics: the same as in Kafka Streams, so that dashboards for Java applications fit.

Tags: ``thread_id`` and ``task_id`` (``0_1``), where the metric's group has them.
Source: org.apache.kafka.streams.processor.internals.metrics.
"""

from __future__ import annotations

from typing import Final

# Per task.
DROPPED_RECORDS: Final = "dropped-records-total"
PROCESSED: Final = "process-total"
PUNCTUATED: Final = "punctuate-total"

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
