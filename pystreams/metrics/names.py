"""Names of metrics: Kafka Streams' own, so that dashboards for Java applications fit.

Tags: ``thread_id``, ``task_id`` (``0_1``), ``processor_node_id``, ``topic``, as far as the name's group has them.
Source: org.apache.kafka.streams.processor.internals.metrics.
"""

from __future__ import annotations

from typing import Final

# By task.
DROPPED_RECORDS: Final = "dropped-records-total"
PROCESSED: Final = "process-total"
PUNCTUATED: Final = "punctuate-total"
ENFORCED_PROCESSING: Final = "enforced-processing-total"
RESTORED: Final = "restore-total"
RESTORE_REMAINING: Final = "restore-remaining-records-total"
ACTIVE_BUFFER_COUNT: Final = "active-buffer-count"
CACHE_SIZE_BYTES: Final = "cache-size-bytes-total"

# By thread.
POLLED: Final = "poll-total"
COMMITTED: Final = "commit-total"
TASKS_CREATED: Final = "task-created-total"
TASKS_CLOSED: Final = "task-closed-total"

# By topic.
RECORDS_CONSUMED: Final = "records-consumed-total"
BYTES_CONSUMED: Final = "bytes-consumed-total"
RECORDS_PRODUCED: Final = "records-produced-total"
BYTES_PRODUCED: Final = "bytes-produced-total"

# By client.
ALIVE_STREAM_THREADS: Final = "alive-stream-threads"
FAILED_STREAM_THREADS: Final = "failed-stream-threads"
