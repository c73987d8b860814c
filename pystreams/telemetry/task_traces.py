"""The spans of tasks: one for each batch, for punctuators that are due together, and for each flush of caches.

A span continues the first sampled trace in the headers of its input, and links to the others. Records that sinks write
during the span carry its context, so traces continue through repartition topics and out of the application.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Tracer,
    set_span_in_context,
    use_span,
)

from pystreams.engine.failures.handling import Send
from pystreams.engine.tracing import Work
from pystreams.ids import TaskId
from pystreams.record import NO_HEADERS, Headers
from pystreams.telemetry.trace_headers import carrying, headers_of, sampled_contexts

#: The largest number of other traces that a span links to.
LINKS_MAX: Final = 32

#: The attributes of a span, by what was counted in it.
_COUNTS: Final = {"process": "messaging.batch.message_count", "punctuate": "pystreams.punctuators"}


class Traces:
    """Implements ``engine.tracing.Tracing``."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def of_task(self, task_id: TaskId, topics: Sequence[str], thread_id: str, send: Send) -> TaskTraces:
        return TaskTraces(self._tracer, task_id, topics, thread_id, send)


@dataclass(slots=True)
class _AtWork:
    """Implements ``engine.tracing.SpanAtWork``."""

    count: int = 0


class TaskTraces:
    """Implements ``engine.tracing.TaskTracing``."""

    def __init__(
        self, tracer: Tracer, task_id: TaskId, topics: Sequence[str], thread_id: str, send: Send
    ) -> None:
        self._tracer = tracer
        self._topics = ", ".join(topics)
        self._attributes = {"pystreams.task": str(task_id), "pystreams.thread": thread_id}
        self._send = send
        #: The headers of the span at work; none if it is not sampled.
        self._own: Headers = NO_HEADERS
        #: Whether a record carries it.
        self._written = False
        #: The last sampled spans since the last flush: the entries in the caches come from them.
        self._unflushed: deque[SpanContext] = deque(maxlen=LINKS_MAX)

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        if self._own:
            headers = carrying(headers, self._own)
            self._written = True
        self._send(topic, partition, key, value, timestamp, headers)

    @contextmanager
    def work(self, work: Work, inputs: Iterable[Headers]) -> Iterator[_AtWork]:
        span = self._begin(work, sampled_contexts(inputs, 1 + LINKS_MAX), SpanKind.CONSUMER)
        done = _AtWork()
        with self._carried(span):
            yield done
        if done.count:
            span.set_attribute(_COUNTS[work], done.count)
            span.end()
            if span.get_span_context().trace_flags.sampled:
                self._unflushed.append(span.get_span_context())

    @contextmanager
    def flush(self) -> Iterator[None]:
        if not self._unflushed:
            yield
            return
        span = self._begin("flush", list(self._unflushed), SpanKind.PRODUCER)
        with self._carried(span):
            yield
        self._unflushed.clear()
        if self._written:
            span.end()

    def _begin(self, work: str, contexts: Sequence[SpanContext], kind: SpanKind) -> Span:
        parent = set_span_in_context(NonRecordingSpan(contexts[0]), Context()) if contexts else Context()
        return self._tracer.start_span(
            f"{work} {self._topics}",
            parent,
            kind,
            self._attributes,
            [Link(context) for context in contexts[1:]],
        )

    @contextmanager
    def _carried(self, span: Span) -> Iterator[None]:
        """A context in which written records carry the span, and spans of the program are its children. An error ends
        it."""
        self._own = headers_of(span)
        self._written = False
        try:
            with use_span(span):
                yield
        except BaseException:
            span.end()
            raise
        finally:
            self._own = NO_HEADERS
