"""The building blocks of every step's code: calls of users' functions, the handling of failures, and the next steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pystreams.dsl.operators.stateless import Foreach, Peek, Print
from pystreams.engine.codegen.graph import Graph, is_object
from pystreams.engine.codegen.names import Names
from pystreams.engine.codegen.scope import Scope
from pystreams.engine.codegen.writer import Writer
from pystreams.functions import UserFunction
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode

#: Beyond these limits a step becomes a function: CPython allows 20 nested blocks, and fewer are readable.
MAX_LOOPS = 6
MAX_STEPS = 40

#: The record's context in the function of a source.
CONTEXT = "(topic, partition, offset, timestamp, headers)"


class Emitter:
    """Writes the code of one sub-topology and collects which globals it uses.

    ``constants`` are globals that are the same in all tasks (users' functions). ``objects`` are filled by each task:
    a global's name maps to (node's name, part of the node).
    """

    def __init__(self, graph: Graph, emit: Callable[[Emitter, Node, Scope], None]) -> None:
        self.graph = graph
        self.names = Names()
        self.out = Writer()
        self.constants: dict[str, Any] = {}
        self.objects: dict[str, tuple[str, str]] = {}
        self.locations: dict[str, str] = {}
        #: Nodes whose functions are called and may still have to be written, by name.
        self.pending: dict[str, Node] = {}
        #: Whether the current function calls code outside of itself that needs the record's context.
        self.called = False
        #: Whether the code of a wrapped step is being written: its exceptions go to the processors around it.
        self.inside = False
        self._emit = emit
        self._nested = 0

    # Users' functions

    def call(
        self, node: Node, function: UserFunction, scope: Scope, *arguments: str, form: str = "{}"
    ) -> str:
        """The expression that calls a user's function with ``arguments``, with the key first if it takes it."""
        name = self.names.step(node.name, form)
        self.constants[name] = function.call
        self.locations[node.name] = function.location
        return f"{name}({', '.join((scope['key'], *arguments) if function.takes_key else arguments)})"

    @contextmanager
    def attempt(self, node: Node, scope: Scope, *, leave: bool = True) -> Iterator[None]:
        """Put the code written inside into a ``try``. If it raises, the processing handler is called, and the record
        does not continue on this branch."""
        if self.inside:
            yield
            return
        with self.out.block("try:"):
            yield
        with self.out.block("except Exception as error:"):
            self.failed(node, scope)
            if leave:
                self.out(scope.leave)

    def failed(self, node: Node, scope: Scope) -> None:
        if self.inside:
            self.out("raise")
            return
        self.set_late_context(scope)
        self.out(f"failed({quote(node.name)}, error, {scope['key']}, {scope.value()})")

    def set_late_context(self, scope: Scope) -> None:
        if scope.late_context:
            self.out(f"cell.record = {CONTEXT}")

    # The next steps

    def children(self, node: Node, scope: Scope) -> None:
        """Write the children of ``node`` in order. Only the last one may leave the place (``scope.leave``)."""
        children = self.graph.children(node)
        for child in children:
            self.child(child, scope, last=child is children[-1])
        if not children and self.out.expects_statement():
            self.out("pass")

    def child(self, node: Node, scope: Scope, *, last: bool) -> None:
        """Write one child: inline if that is possible, else as a call of its function."""
        if self.is_straight(node) or (last and self._fits(node, scope)):
            self._nested += 1
            self._emit(self, node, scope)
            self._nested -= 1
        else:
            arguments = scope.arguments(self.graph.edge_into(node))
            self.out(f"{self.function(node)}({arguments})")

    def function(self, node: Node) -> str:
        """The name of the function that runs ``node`` and the nodes after it."""
        self.called = True
        self.pending.setdefault(node.name, node)
        return self.names.step(node.name, "run_{}")

    def is_straight(self, node: Node) -> bool:
        """True if the node's code always runs to its end, so that it can be inlined anywhere: an object, a sink, or an
        action without children."""
        if isinstance(node, SinkNode):
            return True
        if not isinstance(node, ProcessorNode):
            return False
        if is_object(node):
            return True
        return isinstance(node.operation, Foreach | Print | Peek) and not self.graph.children(node)

    def _fits(self, node: Node, scope: Scope) -> bool:
        shared = len(getattr(node, "parents", ())) > 1
        return not shared and scope.loops < MAX_LOOPS and self._nested < MAX_STEPS

    def bind(self, node: Node, what: str, form: str = "{}") -> str:
        """A global that each task fills with ``what`` of the node."""
        name = self.names.step(node.name, form)
        self.objects[name] = (node.name, what)
        return name

    @contextmanager
    def define(self, name: str, arguments: Sequence[str]) -> Iterator[None]:
        """The code written inside becomes the body of a function."""
        self.out("")
        self.out("")
        with self.out.block(f"def {name}({', '.join(arguments)}):"):
            yield


def quote(text: str) -> str:
    """A string literal as this project writes it."""
    return json.dumps(text, ensure_ascii=False)
