"""Binds compiled code to one task: sets the code's globals, and opens the objects that it calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from pystreams.dsl.operators.base import Folded, Forward, HoldingOperation, ObjectOperation, Operator
from pystreams.dsl.operators.stateless import Print
from pystreams.engine.choosing_sink import ChoosingSink
from pystreams.engine.codegen import CompiledCode
from pystreams.engine.codegen.graph import TABLE_EDGE
from pystreams.engine.input.decoding import Rows
from pystreams.engine.node_defaults import serdes_of
from pystreams.engine.processors.operator_environment import NodeEnvironment, TaskAccess
from pystreams.engine.processors.processor_context import ProcessorRunner
from pystreams.engine.processors.same_key import same_key
from pystreams.engine.processors.wrapped_step import WrappedStep
from pystreams.errors import ProcessingError, StreamsError, summarize
from pystreams.ids import TaskId
from pystreams.topology.nodes import Node, Process, ProcessorNode, SinkNode

#: Runs the records from ``start`` to ``end`` of a batch through the topology; returns the position that it reached.
Read = Callable[[Rows, int, int], int]

#: The same, record by record: the first ``next`` processes nothing, each later one processes one record.
ReadInTurns = Callable[[Rows, int, int], Iterator[None]]


_NOTHING: Mapping[str, int] = {}

#: The global of generated code that holds the owner of each of its lines, for profilers that see its frames.
LINE_OWNERS = "__line_owners__"


class LinkedCode:
    """A task's functions and objects. Call ``init`` before the first record, and ``close`` at the end."""

    def __init__(self, code: CompiledCode, task: TaskAccess, folded: Mapping[str, int] = _NOTHING) -> None:
        """``folded``: see ``TaskServices``."""
        self._code = code
        self._folded = folded
        #: By name, the steps that hold their results.
        self.folds: dict[str, Folded] = {}
        self._task = task
        #: Each node's place in the topology: a node comes after all nodes upstream of it.
        self._places = {name: place for place, name in enumerate(code.graph.nodes)}
        self._operators: list[Operator] = []
        self._operator_closers: list[Callable[[], None]] = []
        self._shared: dict[str, Any] = {}
        self._processors: dict[str, ProcessorRunner] = {}
        self._wrapped_steps: dict[str, WrappedStep] = {}
        self._initialized: list[ProcessorRunner] = []
        self._printers: list[Printer] = []
        self._globals: dict[str, Any] = {
            **code.constants,
            "cell": task.cell,
            "timing": task.timing,
            "task_time": task.cell.time.task,
            "send": task.send,
            "failed": task.failures.failed,
            "each": task.failures.each,
            "move_dropped": task.failures.move_dropped,
            "unwritable": task.failures.unwritable,
            "regroup": regroup,
            "as_pair": as_pair,
            "no_pair": no_pair,
            LINE_OWNERS: code.owners,
        }
        exec(code.code, self._globals)  # noqa: S102 - our own generated code
        try:
            for name, (node, what) in code.objects.items():
                with setting_up(f"step {node}", task.task_id):
                    self._globals[name] = self._object(code.graph.nodes[node], what)
        except BaseException:
            # Close the objects that are open already, because no other code can. Only the first error is raised.
            with suppress(Exception):
                self.close()
            raise
        self.readers: dict[str, Read] = {source: self._globals[name] for source, name in code.readers.items()}
        self.turns: dict[str, ReadInTurns] = {
            source: self._globals[name] for source, name in code.turns.items()
        }

    def init(self) -> None:
        """Initialize the users' processors in the order in which they were added to the topology."""
        for node in self._code.graph.nodes:
            if node in self._processors:
                self._processors[node].init()
                self._initialized.append(self._processors[node])

    def flush_folded(self) -> None:
        for fold in self.folds.values():
            fold.flush()

    def close(self) -> None:
        """Close everything that was opened, even if something raises; then raise the first error."""
        closers: list[Callable[[], None]] = [
            *(processor.close for processor in self._initialized),
            *(operator.close for operator in self._operators),
            *self._operator_closers,
            *(printer.close for printer in self._printers),
        ]
        _call_all(closers)

    def _object(self, node: Node, what: str) -> Any:
        if isinstance(node, SinkNode):
            return self._sink_part(node, what)
        assert isinstance(node, ProcessorNode)
        operation = node.operation
        if node.supplier is not None and what in ("process", "hand_on"):
            step = self._wrapped(node)
            return step.enter if what == "process" else step.hand_on
        if isinstance(operation, Print):
            printer = Printer(operation)
            self._printers.append(printer)
            return printer.write
        if isinstance(operation, Process):
            return self._processor(node, operation)
        operator = self._operator(node, self._globals[self._code.after[node.name]])
        self._operators.append(operator)
        return operator.process

    def _operator(self, node: ProcessorNode, forward: Forward) -> Operator:
        operation = node.operation
        assert isinstance(operation, ObjectOperation)
        environment = NodeEnvironment(
            node.name,
            self._places[node.name],
            self._task,
            forward,
            self._shared,
            self._operator_closers.append,
        )
        if node.name not in self._folded:
            return operation.open(environment)
        assert isinstance(operation, HoldingOperation)
        fold = operation.fold(environment, self._folded[node.name])
        self.folds[node.name] = fold
        return fold

    def _wrapped(self, node: ProcessorNode) -> WrappedStep:
        """The processors that wrap a step. The first call creates them; later calls return the same ones."""
        found = self._wrapped_steps.get(node.name)
        if found is not None:
            return found
        graph = self._code.graph

        def open_inside(hand_on: Forward) -> tuple[Callable[..., None], Callable[[], None]]:
            name = self._code.insides.get(node.name)
            if name is not None:
                return self._globals[name], lambda: None
            with setting_up(f"step {node.name}", self._task.task_id):
                operator = self._operator(node, hand_on)
            return operator.process, operator.close

        step = self._wrapped_steps[node.name] = self._processors[node.name] = WrappedStep(
            node,
            self._task,
            self._globals[self._code.after[node.name]],
            self._children(node),
            takes_changes=graph.edge_into(node) is TABLE_EDGE,
            makes_changes=graph.edge_out(node) is TABLE_EDGE,
            open_inside=open_inside,
        )
        return step

    def _children(self, node: ProcessorNode) -> dict[str, Any]:
        return {child: self._globals[name] for child, name in self._code.children[node.name].items()}

    def _processor(self, node: ProcessorNode, operation: Process) -> Any:
        forward = self._globals[self._code.after[node.name]]
        runner = ProcessorRunner(node, operation, self._task, forward, self._children(node))
        self._processors[node.name] = runner
        return runner.process

    def _sink_part(self, node: SinkNode, what: str) -> Any:
        key_serde, value_serde = serdes_of(node, self._task.config)
        task = self._task
        if what == "sink":
            send = self._globals["send"]
            sink = ChoosingSink(
                node, key_serde, value_serde, send, task.partition_count, task.failures, task.cell, task.flow
            )
            return sink.write
        assert node.topic is not None
        if what == "written":
            return task.flow.written(node.name, node.topic)
        return key_serde.key_serializer(node.topic) if what == "key" else value_serde.serializer(node.topic)


@contextmanager
def setting_up(what: str, task_id: TaskId) -> Iterator[None]:
    """Turn an exception of a user's serde or function into a ``ProcessingError`` that names ``what`` was set up."""
    try:
        yield
    except StreamsError:
        raise
    except Exception as error:
        raise ProcessingError(
            f"{what} cannot be set up: {summarize(error)}",
            where=f"task {task_id}",
            hint="correct the serde or the function that raised; handlers are only called for errors with a record",
        ) from error


def as_pair(result: Any) -> tuple[Any, Any]:
    """The result of a user's function as (key, value). Other values with two elements (str, dict, set) are mistakes."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise no_pair(result)
    key, value = result
    return key, value


def no_pair(result: object) -> TypeError:
    """The error for a function's result that should be (key, value) and is not."""
    length = f" of {len(result)} elements" if isinstance(result, tuple | list) else ""
    return TypeError(
        f"a value of type {type(result).__qualname__}{length} is not a pair: expected (key, value), as a tuple"
    )


def regroup(new: tuple[Any, Any] | None, old: tuple[Any, Any] | None) -> list[tuple[Any, Any, Any]]:
    """The changes (key, new, old) that a changed row causes in its groups. If the old and the new row have the same
    group key, there is one change; otherwise the old row is first removed from its group, then the new row is added
    to its own. A row without key or value is in no group.

    Source: KTableRepartitionMap.
    """
    new_key, new_value = (None, None) if new is None else as_pair(new)
    old_key, old_value = (None, None) if old is None else as_pair(old)
    arrives = new_key is not None and new_value is not None
    leaves = old_key is not None and old_value is not None
    if arrives and leaves and same_key(new_key, old_key):
        return [(new_key, new_value, old_value)]
    changes: list[tuple[Any, Any, Any]] = []
    if leaves:
        changes.append((old_key, None, old_value))
    if arrives:
        changes.append((new_key, new_value, None))
    return changes


class Printer:
    """Writes lines ``[label]: key, value``. If there is a ``path``, the first line opens the file."""

    def __init__(self, operation: Print) -> None:
        self._label = operation.label
        self._path = operation.path
        self._file: TextIO | None = None

    def write(self, key: Any, value: Any) -> None:
        if self._path is not None and self._file is None:
            self._file = Path(self._path).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115 - see close
        print(f"[{self._label}]: {key}, {value}", file=self._file)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _call_all(closers: Iterable[Callable[[], None]]) -> None:
    first: Exception | None = None
    for close in closers:
        try:
            close()
        except Exception as error:  # noqa: BLE001 - raised below
            first = first or error
    if first is not None:
        raise first
