"""Names of metrics: Kafka Streams' own, so that dashboards for Java applications fit.

Tags: ``thread_id``, ``task_id`` (``0_1``), as far as the name's group has them.
Source: org.apache.kafka.streams.processor.internals.metrics.
"""

from __future__ import annotations

from typing import Final

# By task.
DROPPED_RECORDS: Final = "dropped-records-total"
PROCESSED: Final = "process-total"
PUNCTUATED: Final = "punctuate-total"

# By thread.
POLLED: Final = "poll-total"
COMMITTED: Final = "commit-total"
TASKS_CREATED: Final = "task-created-total"
TASKS_CLOSED: Final = "task-closed-total"

# By client.
ALIVE_STREAM_THREADS: Final = "alive-stream-threads"
FAILED_STREAM_THREADS: Final = "failed-stream-threads"
