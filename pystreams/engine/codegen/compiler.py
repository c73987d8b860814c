"""Turns the nodes of a sub-topology into Python source.

Each source becomes a function that processes a stretch of a batch; stateless steps are inlined in it, one below the
other. Steps that cannot be inlined become functions: a branch that may end early while its siblings go on, a step with
several parents, and the steps after an object (``after_…``), because only the object knows how often it forwards.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from pystreams.dsl.operators.process import Process
from pystreams.engine.codegen import ends, steps, table_steps
from pystreams.engine.codegen.emitter import CONTEXT, Emitter
from pystreams.engine.codegen.graph import TABLE_EDGE, Graph, is_object
from pystreams.engine.codegen.inside import HandOn, Inside, emit_hand_on, has_code
from pystreams.engine.codegen.scope import Scope
from pystreams.engine.codegen.writer import LineOwner, Work
from pystreams.errors import TopologyError
from pystreams.functions import UserFunction, locate
from pystreams.processor import Processor
from pystreams.topology.nodes import Node, Operation, ProcessorNode, SinkNode, SourceNode, is_processor
from pystreams.topology.wrapping import at_fault

EMITTERS = {**steps.EMITTERS, **table_steps.EMITTERS}


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """The source of a sub-topology, compiled once and run in each of its tasks with globals of the task's own.

    These map the name of a node to the name of a function. ``readers``: of a source, the function that processes a
    stretch of a batch. ``turns``: of a source, the function that does so record by record; empty if there is only one
    topic, because nothing takes turns with it. ``after``: of an object, the function of the steps after it.
    ``children``: of a user's processor, the functions of its children by name. ``insides``: of a wrapped step, the
    function of its own code. ``constants`` and ``objects``: see Emitter.
    """

    name: str
    source: str
    code: CodeType
    readers: Mapping[str, str]
    turns: Mapping[str, str]
    after: Mapping[str, str]
    children: Mapping[str, Mapping[str, str]]
    insides: Mapping[str, str]
    constants: Mapping[str, Any]
    objects: Mapping[str, tuple[str, str]]
    #: The places of each step's user functions in the source code, for messages.
    locations: Mapping[str, str]
    #: The step that each line of the source belongs to.
    owners: Sequence[LineOwner]
    graph: Graph


def compile_nodes(nodes: Sequence[Node], name: str) -> CompiledCode:
    """Compile a sub-topology. ``name`` is what tracebacks show as its file, like ``<pystreams wordcount 0>``."""
    graph = Graph(nodes)
    e = Emitter(graph, _emit)
    e.out(f'"""{name.strip("<>")}: generated; depth first, children in order."""')
    sources = graph.sources()
    readers = {source.name: _emit_source(e, source) for source in sources}
    alone = len(sources) == 1 and len(sources[0].topics) == 1
    turns = {} if alone else {source.name: _emit_source(e, source, in_turns=True) for source in sources}
    after: dict[str, str] = {}
    children: dict[str, Mapping[str, str]] = {}
    insides: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ProcessorNode) and is_object(node):
            after[node.name] = _emit_after(e, node)
            if node.supplier is not None:
                _checked_processor(node.name, node.supplier)
            if location := _locate(node):
                e.locations[node.name] = location
            if is_processor(node):
                children[node.name] = _functions_of_children(e, node)
            if has_code(node):
                insides[node.name] = _emit_inside(e, node)
    written: set[str] = set()
    while todo := [node for name, node in e.pending.items() if name not in written]:
        for node in todo:
            written.add(node.name)
            _emit_function(e, node)
    source = e.out.text()
    return CompiledCode(
        *_register(name, source),
        readers,
        turns,
        after,
        children,
        insides,
        e.constants,
        e.objects,
        e.locations,
        e.out.owners,
        graph,
    )


def _locate(node: ProcessorNode) -> str:
    """The place in the source code of the user's functions that the node's object calls."""
    if isinstance(node.operation, Process):
        return locate(_checked_processor(node.name, node.operation.supplier).process)
    return _locate_functions(node.operation)


def _checked_processor(step: str, supplier: Callable[[], Any]) -> Any:
    """One of the supplier's processors. Raises ``TopologyError`` if it gives none, one whose methods cannot be called,
    or the same one twice, because tasks would share its state."""
    with at_fault(f"the supplier of {step}", supplier):
        processor = supplier()
        again = supplier()
    if not callable(getattr(processor, "process", None)):
        raise TopologyError(
            f"the supplier of {step} gives {processor!r}, which is not a processor",
            where=locate(supplier),
            hint="pass a class derived from Processor, or a function that makes an instance of one",
        )
    if processor is again:
        raise TopologyError(
            f"the supplier of {step} gives the same processor each time",
            where=locate(supplier),
            why="every task needs a processor of its own",
            hint="pass the class, or a function that makes a new instance",
        )
    if getattr(processor.process, "__func__", None) is Processor.process:
        raise TopologyError(
            f"{type(processor).__name__}, the processor of {step}, has no method process",
            where=locate(supplier),
            hint="define process(self, record)",
        )
    UserFunction.of(processor.init, "context", f"step {step}")
    UserFunction.of(processor.process, "record", f"step {step}")
    UserFunction.of(processor.close, "supply", f"step {step}")
    return processor


def _locate_functions(operation: Operation) -> str:
    """The places in the source code of the functions that the user gave to an object's operation."""
    values = (getattr(operation, field) for field in getattr(operation, "__dataclass_fields__", ()))
    functions = [value for value in values if isinstance(value, UserFunction)]
    own = [f for f in functions if not (getattr(f.call, "__module__", "") or "").startswith("pystreams.")]
    return ", ".join(dict.fromkeys(function.location for function in own))


def _functions_of_children(e: Emitter, node: ProcessorNode) -> Mapping[str, str]:
    """The functions that a user's processor calls to forward to one child by name."""
    children = e.graph.children(node)
    if len(children) == 1:
        return {children[0].name: e.names.step(node.name, "after_{}")}
    return {child.name: e.function(child) for child in children}


def _emit(e: Emitter, node: Node, scope: Scope) -> None:
    """Write the code of one node and of the nodes after it."""
    with e.out.owned_by(node.name, Work.FUNCTION if _calls_functions(node) else Work.ENGINE):
        _emit_owned(e, node, scope)


def _calls_functions(node: Node) -> bool:
    """Whether the node's code calls functions of the program itself."""
    return isinstance(node, ProcessorNode) and not is_object(node)


def _emit_owned(e: Emitter, node: Node, scope: Scope) -> None:
    if isinstance(node, SinkNode):
        ends.emit_sink(e, node, scope)
    elif isinstance(node, SourceNode):
        raise TopologyError(f"{node.name} is a source and cannot have parents")
    elif isinstance(node.operation, HandOn):
        emit_hand_on(e, node.operation, scope)
    elif is_object(node):
        if not has_code(node):
            _check_edge(e, node, takes_changes=getattr(node.operation, "takes_changes", False))
        ends.emit_object(e, node, scope)
    elif type(node.operation) in EMITTERS:
        _check_edge(e, node, takes_changes=type(node.operation) in table_steps.EMITTERS)
        EMITTERS[type(node.operation)](e, node, node.operation, scope)
    else:
        raise TopologyError(
            f"{node.name} has an operation that cannot be run: {type(node.operation).__name__}"
        )


def _check_edge(e: Emitter, node: ProcessorNode, *, takes_changes: bool) -> None:
    if takes_changes != (e.graph.edge_into(node) is TABLE_EDGE):
        kinds = ("a table", "a stream") if takes_changes else ("a stream", "a table")
        raise TopologyError(
            f"{node.name} works on {kinds[0]}, but its parent is {kinds[1]}", where=", ".join(node.parents)
        )


def _emit_source(e: Emitter, node: SourceNode, *, in_turns: bool = False) -> str:
    name = e.names.step(node.name, "turns_{}" if in_turns else "read_{}")
    start = len(e.out.lines)
    e.called = False
    with e.out.owned_by(node.name, Work.ENGINE):
        _emit_read(e, node, name, late_context=True, in_turns=in_turns)
        if e.called:
            # Code outside of this function needs the context of each record, not only of records that fail.
            e.out.cut(start)
            _emit_read(e, node, name, late_context=False, in_turns=in_turns)
    return name


def _emit_read(e: Emitter, node: SourceNode, name: str, *, late_context: bool, in_turns: bool) -> None:
    out = e.out
    counts = e.graph.reaches_processor(node)
    with e.define(name, ("batch", "start", "end")):
        out(f"# {node.name}: {', '.join(node.topics) or (node.pattern.pattern if node.pattern else '')}")
        if not e.graph.children(node):
            out("return iter(())" if in_turns else "return end")
            return
        out("topic, partition = batch.topic, batch.partition")
        if counts and not in_turns:
            out("now, unbounded = task_time.ms, task_time.unbounded")
        with out.block("for key, value, timestamp, offset, headers in batch.rows(start, end):"):
            if in_turns:
                out("yield")
            else:
                with out.block("if timing.interrupted:"):
                    out("return batch.position_of(offset)")
            if counts:
                # If inputs take turns, records of the others advance the task's time, too.
                with out.block(f"if timestamp > {'task_time.ms' if in_turns else 'now'}:"):
                    with out.block(f"if {'task_time.' if in_turns else ''}unbounded:"):
                        out("task_time.ms = now = timestamp")
                    with out.block("elif timestamp > task_time.beyond_ms:"):
                        out("now = task_time.see(timestamp)")
            if not late_context:
                out(f"cell.record = {CONTEXT}")
            scope = Scope.of(("key", "value", "timestamp", "headers"), "continue", 1, late_context)
            e.children(node, scope)
        if not in_turns:
            out("return end")


def _emit_function(e: Emitter, node: Node) -> None:
    edge = e.graph.edge_into(node)
    with e.define(e.function(node), edge):
        _emit(e, node, Scope.of(edge, "return"))


def _emit_inside(e: Emitter, node: ProcessorNode) -> str:
    """Write the code of a step that is wrapped in processors."""
    name = e.names.step(node.name, "inside_{}")
    outer, edge = e.graph, e.graph.edge_into(node)
    takes_changes = type(node.operation) in table_steps.EMITTERS
    _check_edge(e, node, takes_changes=takes_changes)
    with e.out.owned_by(node.name, Work.FUNCTION), e.define(name, edge):
        e.graph, e.inside = Inside(outer, node), True
        EMITTERS[type(node.operation)](e, node, node.operation, Scope.of(edge, "return"))
        e.graph, e.inside = outer, False
    return name


def _emit_after(e: Emitter, node: ProcessorNode) -> str:
    name = e.names.step(node.name, "after_{}")
    edge = e.graph.edge_out(node)
    with e.out.owned_by(node.name, Work.ENGINE), e.define(name, edge):
        e.out(f"# what follows {node.name}")
        e.children(node, Scope.of(edge, "return"))
    return name


def _register(name: str, source: str) -> tuple[str, str, CodeType]:
    """Compile under a file name that ``linecache`` knows, so that tracebacks and debuggers show the lines."""
    lines = source.splitlines(keepends=True)
    unique, n = name, 2
    while linecache.getlines(unique) not in ([], lines):
        unique, n = f"{name.rstrip('>')} #{n}>", n + 1
    # Without a modification time linecache never looks for a file.
    linecache.cache[unique] = (len(source), None, lines, unique)
    return unique, source, compile(source, unique, "exec")
