"""A task whose batches, punctuators and flushes are spans of traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from pystreams.engine.failures.handling import Send
from pystreams.engine.stream_task import StreamTask
from pystreams.engine.tracing import TaskTracing
from pystreams.record import Headers

#: The largest number of records of each partition whose headers are searched for traces.
_LOOKED_AT_MAX = 500


class TracedTask(StreamTask):
    """A ``StreamTask`` whose services have a tracing."""

    @cached_property
    def _trace(self) -> TaskTracing:
        services = self._services
        assert services.tracing is not None
        topics = sorted({partition.topic for partition in self.partitions})
        return services.tracing.of_task(self.task_id, topics, services.thread_id, services.producer.send)

    @property
    def send(self) -> Send:
        return self._trace.send

    def process(self, max_records: int, now_ms: int, until_ms: int | None = None) -> int:
        if self.head_time is None:
            return super().process(max_records, now_ms, until_ms)
        with self._trace.work("process", self._next_headers(min(max_records, _LOOKED_AT_MAX))) as span:
            span.count = super().process(max_records, now_ms, until_ms)
        return span.count

    def punctuate_wall_clock(self, now_ms: int) -> int:
        if self.wall_punctuations.next_time_ms > now_ms:
            return super().punctuate_wall_clock(now_ms)
        with self._trace.work("punctuate", ()) as span:
            span.count = super().punctuate_wall_clock(now_ms)
        return span.count

    def flush(self, flush_caches: Callable[[], None]) -> None:
        with self._trace.flush():
            super().flush(flush_caches)

    def _next_headers(self, limit: int) -> Iterator[Headers]:
        """The headers of the next records of each partition."""
        for _, queue in sorted(self._group.queues.items()):
            rows = queue.rows
            if rows is not None and rows.raw.headers is not None:
                yield from rows.raw.headers[queue.position : queue.position + limit]
