"""Runs the value transformers of tables, which users write as classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pystreams.engine.processors.processor_context import TaskContext, TaskView, life_cycle_error
from pystreams.errors import ProcessingError, TopologyError
from pystreams.functions import UserFunction
from pystreams.processor import ValueTransformer
from pystreams.record import Record


class TransformerRunner(TaskContext):
    """A user's ``ValueTransformer`` in one task, and the context of this transformer."""

    def __init__(self, step: str, stores: Sequence[str], supplier: Callable[[], Any], task: TaskView) -> None:
        super().__init__(step, stores, task)
        try:
            self._transformer = supplier()
        except Exception as error:
            raise life_cycle_error("the supplier", step, task.task_id, error) from error
        self.transform: Callable[[Any, Any], Any] = _checked(self._transformer, step)

    def init(self) -> None:
        """Call the transformer's ``init``. Raises ``ProcessingError`` if it raises."""
        try:
            self._transformer.init(self)
        except Exception as error:
            raise life_cycle_error("init", self._step, self._task.task_id, error) from error

    def close(self) -> None:
        """Call the transformer's ``close``. Raises ``ProcessingError`` if it raises."""
        try:
            self._transformer.close()
        except Exception as error:
            raise life_cycle_error("close", self._step, self._task.task_id, error) from error

    def forward(self, record: Record[Any, Any], child: str | None = None) -> None:
        """Always raises: a transformer cannot forward. Source: ForwardingDisabledProcessorContext."""
        raise ProcessingError(
            f"the transformer of {self._step} called forward",
            where=f"task {self._task.task_id}",
            why="what it returns is the new value; the row's key decides where it goes",
            hint="return the value; to forward records of your own, use to_stream().process(...)",
        )


def _checked(transformer: Any, step: str) -> Callable[[Any, Any], Any]:
    """The method ``transform``. Raises ``TopologyError`` if it cannot be called for a row."""
    transform = getattr(transformer, "transform", None)
    if not callable(transform) or getattr(transform, "__func__", None) is ValueTransformer.transform:
        raise TopologyError(
            f"{type(transformer).__name__}, the transformer of {step}, has no method transform",
            hint="derive it from ValueTransformer, and define transform(self, key, value)",
        )
    return UserFunction.of(transform, "transform", f"step {step}").call
