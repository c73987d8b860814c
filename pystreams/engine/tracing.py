"""The interface of tracing, which a host may offer to its tasks. Tasks of other hosts are plain ``StreamTask``s.

A span is one piece of work of a task: a batch, the punctuators that are due, or the flush of the caches at a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from pystreams.engine.failures.handling import Send
from pystreams.ids import TaskId
from pystreams.record import Headers

Work = Literal["process", "punctuate"]


class SpanAtWork(Protocol):
    """The span of the present work. It is dropped if its ``count`` stays 0, because nothing was done."""

    #: Records processed, or punctuators called.
    count: int


class TaskTracing(Protocol):
    """The traces of one task. Only the task's thread uses it."""

    @property
    def send(self) -> Send:
        """Writes a record of a sink, with the span in its headers, if it is sampled."""
        ...

    def work(self, work: Work, inputs: Iterable[Headers]) -> AbstractContextManager[SpanAtWork]:
        """The span of the work inside the context, which continues the traces in the headers of ``inputs``."""
        ...

    def flush(self) -> AbstractContextManager[None]:
        """The span of a flush, which continues the traces of the batches since the last one. It is dropped if no record
        is written inside."""
        ...


class Tracing(Protocol):
    """Traces the tasks of a client."""

    def of_task(self, task_id: TaskId, topics: Sequence[str], thread_id: str, send: Send) -> TaskTracing:
        """The traces of a task that reads ``topics``, and writes with ``send``."""
        ...
