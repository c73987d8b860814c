"""Writes the code of a step that a processor wrapper has put processors around.

For other steps, such a step is an object: the outermost of those processors. The innermost one calls the step itself.
If the step's code is generated, it becomes a function here, which hands its results to the processor's context
(``hand_on``). Its exceptions propagate through the processors around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pystreams.dsl.operators.stateless import Branch, Foreach, Print
from pystreams.engine.codegen.emitter import Emitter, quote
from pystreams.engine.codegen.graph import Graph, is_operator
from pystreams.engine.codegen.scope import Scope
from pystreams.topology.nodes import Node, Operation, Process, ProcessorNode


@dataclass(eq=False, slots=True)
class HandOn(Operation):
    """The hand-over of the results of ``step`` to the following steps. ``child``: only this one gets them."""

    step: ProcessorNode
    edge: tuple[str, ...]
    child: str | None = None


class Inside(Graph):
    """The graph for the code of a wrapped step: its only children hand its results on."""

    def __init__(self, graph: Graph, node: ProcessorNode) -> None:
        super().__init__([])
        self._of = graph
        self._node = node
        self._children = {node.name: list(_hand_on(node, graph.edge_out(node)))}

    def edge_into(self, node: Node) -> tuple[str, ...]:
        return self._of.edge_into(node) if node is self._node else self._of.edge_out(self._node)


def _hand_on(node: ProcessorNode, edge: tuple[str, ...]) -> Sequence[ProcessorNode]:
    operation = node.operation
    if isinstance(operation, Foreach | Print):
        return ()
    if isinstance(operation, Branch):
        targets = [*operation.children, *([operation.default] if operation.default else [])]
        return [ProcessorNode(name, (), HandOn(node, edge, name)) for name in targets]
    return [ProcessorNode(node.name, (), HandOn(node, edge))]


def has_code(node: ProcessorNode) -> bool:
    """Whether the step itself is generated code, and not an operator or a processor."""
    return node.supplier is not None and not isinstance(node.operation, Process) and not is_operator(node)


def emit_hand_on(e: Emitter, operation: HandOn, scope: Scope) -> None:
    child = "None" if operation.child is None else quote(operation.child)
    hand_on = e.bind(operation.step, "hand_on", "hand_on_{}")
    e.out(f"{hand_on}({child}, {scope.arguments(operation.edge)})")
