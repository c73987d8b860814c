"""Writes the code of steps on streams. Each emitter writes the lines of its step and then the next steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pystreams.dsl.operators import stateless as ops
from pystreams.engine.codegen.emitter import CONTEXT, Emitter, quote
from pystreams.engine.codegen.scope import Scope
from pystreams.topology.nodes import ProcessorNode

StepEmitter = Callable[[Emitter, ProcessorNode, Any, Scope], None]


def emit_forward(e: Emitter, node: ProcessorNode, _op: ops.Forward | ops.AnyKey, scope: Scope) -> None:
    e.out(f"# {node.name}")
    e.children(node, scope)


def emit_not_null_key(e: Emitter, node: ProcessorNode, _op: ops.NotNullKey, scope: Scope) -> None:
    with e.out.block(f"if {scope['key']} is None:  # {node.name}"):
        e.set_late_context(scope)
        e.out(f'move_dropped({quote(node.name)}, "null key")')
        e.out(scope.leave)
    e.children(node, scope)


def emit_filter(e: Emitter, node: ProcessorNode, op: ops.Filter, scope: Scope) -> None:
    call = e.call(node, op.predicate, scope, scope["value"])
    condition = call if op.negate else f"not {call}"
    with e.attempt(node, scope), e.out.block(f"if {condition}:  # {node.name}"):
        e.out(scope.leave)
    e.children(node, scope)


def emit_map(e: Emitter, node: ProcessorNode, op: ops.Map, scope: Scope) -> None:
    call = e.call(node, op.mapper, scope, scope["value"])
    inner = scope.bind("key", "value")
    with e.attempt(node, scope):
        e.out(f"pair = {call}  # {node.name}")
        _unpack(e, inner)
    e.children(node, inner)


def emit_map_values(e: Emitter, node: ProcessorNode, op: ops.MapValues, scope: Scope) -> None:
    call = e.call(node, op.mapper, scope, scope["value"])
    inner = scope.bind("value")
    with e.attempt(node, scope):
        e.out(f"{inner['value']} = {call}  # {node.name}")
    e.children(node, inner)


def emit_select_key(e: Emitter, node: ProcessorNode, op: ops.SelectKey, scope: Scope) -> None:
    call = e.call(node, op.mapper, scope, scope["value"])
    inner = scope.bind("key")
    with e.attempt(node, scope):
        e.out(f"{inner['key']} = {call}  # {node.name}")
    e.children(node, inner)


def emit_flat_map(e: Emitter, node: ProcessorNode, op: ops.FlatMap, scope: Scope) -> None:
    call = e.call(node, op.mapper, scope, scope["value"])
    with e.attempt(node, scope):
        e.out(f"pairs = {call}  # {node.name}")
    inner = scope.loop().bind("key", "value")
    with e.out.block(f"for pair in {_elements(e, node, 'pairs', scope)}:"):
        with e.out.block("try:"):
            _unpack(e, inner)
        with e.out.block("except Exception as error:"):
            e.failed(node, scope)
            e.out("break")
        e.children(node, inner)


def emit_flat_map_values(e: Emitter, node: ProcessorNode, op: ops.FlatMapValues, scope: Scope) -> None:
    call = e.call(node, op.mapper, scope, scope["value"])
    with e.attempt(node, scope):
        e.out(f"values = {call}  # {node.name}")
    inner = scope.loop().bind("value")
    with e.out.block(f"for {inner['value']} in {_elements(e, node, 'values', scope)}:"):
        e.children(node, inner)


def _unpack(e: Emitter, inner: Scope) -> None:
    """Unpack a pair. A tuple of another length fails to unpack; other types go to ``as_pair``, since e.g. a str of two
    letters would unpack."""
    with e.out.block("try:"):
        e.out(f"{inner['key']}, {inner['value']} = pair if pair.__class__ is tuple else as_pair(pair)")
    with e.out.block("except ValueError:"):
        e.out("raise no_pair(pair) from None")


def _elements(e: Emitter, node: ProcessorNode, variable: str, scope: Scope) -> str:
    """The expression to iterate over. Any iterable but a list may raise meanwhile; ``each`` then asks the handler."""
    if e.inside:
        return variable
    context = CONTEXT if scope.late_context else "cell.record"
    each = f"each({quote(node.name)}, {variable}, {scope['key']}, {scope['value']}, {context})"
    return f"{variable} if type({variable}) is list else {each}"


def emit_peek(e: Emitter, node: ProcessorNode, op: ops.Peek | ops.Foreach, scope: Scope) -> None:
    with e.attempt(node, scope, leave=bool(e.graph.children(node))):
        e.out(f"{e.call(node, op.action, scope, scope['value'])}  # {node.name}")
    e.children(node, scope)


def emit_print(e: Emitter, node: ProcessorNode, _op: ops.Print, scope: Scope) -> None:
    with e.attempt(node, scope, leave=False):
        e.out(f"{e.bind(node, 'print')}({scope['key']}, {scope['value']})  # {node.name}")


def emit_branch(e: Emitter, node: ProcessorNode, op: ops.Branch, scope: Scope) -> None:
    choice = str(len(op.predicates))
    for i in reversed(range(len(op.predicates))):
        call = e.call(node, op.predicates[i], scope, scope["value"], form=f"{{}}_{i}")
        choice = f"{i} if {call} else {choice}"
    with e.attempt(node, scope):
        e.out(f"branch = {choice}  # {node.name}")
    children = {child.name: child for child in e.graph.children(node)}
    targets = [*op.children, *([op.default] if op.default else [])]
    for i, name in enumerate(targets):
        with e.out.block(f"{'if' if i == 0 else 'elif'} branch == {i}:"):
            e.child(children[name], scope, last=True)


EMITTERS: dict[type, StepEmitter] = {
    ops.Forward: emit_forward,
    ops.NotNullKey: emit_not_null_key,
    ops.AnyKey: emit_forward,
    ops.Filter: emit_filter,
    ops.Map: emit_map,
    ops.MapValues: emit_map_values,
    ops.SelectKey: emit_select_key,
    ops.FlatMap: emit_flat_map,
    ops.FlatMapValues: emit_flat_map_values,
    ops.Peek: emit_peek,
    ops.Foreach: emit_peek,
    ops.Print: emit_print,
    ops.Branch: emit_branch,
}
