"""Runs the processors that a processor wrapper has put around a step, and the step inside them.

Source: org.apache.kafka.streams.processor.api.ProcessorWrapper (KIP-1112).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pystreams.engine.processors.processor_context import ProcessorRunner, Target, TaskView
from pystreams.errors import TopologyError
from pystreams.processor import Change, ProcessorContext, step_at_hand
from pystreams.record import Headers, Record
from pystreams.topology.nodes import Process, ProcessorNode

#: Opens the step. The argument is the function that takes the step's results, with the arguments of its outgoing edge.
#: Returns the function that processes a record, with the arguments of the incoming edge, and the one that closes the
#: step.
OpenInside: TypeAlias = Callable[[Callable[..., None]], tuple[Callable[..., None], Callable[[], None]]]


class WrappedStep(ProcessorRunner):
    """The processors around a step, in one task. They see a change of a table's row as a record whose value is a
    ``Change``."""

    def __init__(
        self,
        node: ProcessorNode,
        task: TaskView,
        all: Target,
        children: Mapping[str, Target],
        *,
        takes_changes: bool,
        makes_changes: bool,
        open_inside: OpenInside,
    ) -> None:
        assert node.supplier is not None
        operation = node.operation
        self._open_inside = open_inside
        self._takes_changes = takes_changes
        self._context: ProcessorContext[Any, Any] | None = None
        #: Takes the step's results: a child's name or None, then the arguments of the outgoing edge.
        self.hand_on: Callable[..., None] = self._hand_on_change if makes_changes else self._hand_on
        if makes_changes:
            all, children = _of_changes(all), {name: _of_changes(child) for name, child in children.items()}
        fixed_key = isinstance(operation, Process) and operation.fixed_key
        with step_at_hand(self._open):
            super().__init__(node, Process(node.supplier, fixed_key), task, all, children)
        #: Processes a record, with the arguments of the step's incoming edge.
        self.enter: Callable[..., None] = self._enter_change if takes_changes else self.process

    def init(self) -> None:
        with step_at_hand(self._open):
            super().init()

    def _enter_change(
        self, key: Any, new: Any, old: Any, timestamp: int, headers: Headers, is_latest: bool
    ) -> None:
        self.process(key, Change(new, old, is_latest), timestamp, headers)

    def _open(
        self, context: ProcessorContext[Any, Any]
    ) -> tuple[Callable[[Record[Any, Any]], None], Callable[[], None]]:
        if self._context is not None:
            raise TopologyError(
                f"two processors of the step {self._step} were initialized in one task",
                hint="initialize one of those that the wrapped supplier gives",
            )
        self._context = context
        hand_on = self.hand_on
        process, close = self._open_inside(lambda *change: hand_on(None, *change))
        cell, takes_changes = self._cell, self._takes_changes

        def run(record: Record[Any, Any]) -> None:
            value, timestamp, headers = record.value, record.timestamp, tuple(record.headers)
            before = cell.record
            if before[3] != timestamp or before[4] != headers:
                cell.record = (before[0], before[1], before[2], timestamp, headers)
            try:
                if takes_changes:
                    new, old, is_latest = _change(value)
                    process(record.key, new, old, timestamp, headers, is_latest)
                else:
                    process(record.key, value, timestamp, headers)
            finally:
                cell.record = before

        return run, close

    def _hand_on(self, child: str | None, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Forward a result of the step. This may happen at any time, because the flush of a cache forwards, too."""
        context, active = self._context, self._active
        assert context is not None
        self._active = True
        try:
            record = Record(key, value, timestamp, headers)
            if child is None:
                context.forward(record)
            else:
                context.forward(record, child)
        finally:
            self._active = active

    def _hand_on_change(
        self,
        child: str | None,
        key: Any,
        new: Any,
        old: Any,
        timestamp: int,
        headers: Headers,
        is_latest: bool,
    ) -> None:
        self._hand_on(child, key, Change(new, old, is_latest), timestamp, headers)


def _change(value: object) -> Change[Any]:
    if not isinstance(value, Change):
        raise TypeError(f"between steps of tables goes a Change, not {type(value).__qualname__}")
    return value


def _of_changes(target: Callable[..., None]) -> Target:
    def hand_over(key: Any, change: Any, timestamp: int, headers: Headers) -> None:
        new, old, is_latest = _change(change)
        target(key, new, old, timestamp, headers, is_latest)

    return hand_over
