"""Writes the code of table steps without a store. They pass on changes from an old to a new value."""

from __future__ import annotations

from pystreams.dsl.operators import table as ops
from pystreams.dsl.operators.pass_through import TablePassThrough
from pystreams.dsl.operators.table_join import TableJoinMerge
from pystreams.engine.codegen.emitter import Emitter
from pystreams.engine.codegen.scope import Scope
from pystreams.engine.codegen.steps import StepEmitter
from pystreams.functions import UserFunction
from pystreams.topology.nodes import ProcessorNode


def emit_filter(e: Emitter, node: ProcessorNode, op: ops.TableFilter, scope: Scope) -> None:
    inner = scope.bind("new", "old")

    def kept(part: str) -> str:
        call = e.call(node, op.predicate, scope, scope[part])
        return f"{scope[part]} if {scope[part]} is not None and {'not ' if op.negate else ''}{call} else None"

    with e.attempt(node, scope):
        e.out(f"{inner['new']} = {kept('new')}  # {node.name}")
        e.out(f"{inner['old']} = {kept('old') if op.send_old_values else 'None'}")
    if op.send_old_values and not op.from_versioned:
        with e.out.block(f"if {inner['new']} is None and {inner['old']} is None:"):
            e.out(scope.leave)
    e.children(node, inner)


def emit_map_values(e: Emitter, node: ProcessorNode, op: ops.TableMapValues, scope: Scope) -> None:
    inner = scope.bind("new", "old")
    with e.attempt(node, scope):
        e.out(f"{inner['new']} = {_mapped(e, node, op.mapper, scope, 'new')}  # {node.name}")
        e.out(
            f"{inner['old']} = {_mapped(e, node, op.mapper, scope, 'old') if op.send_old_values else 'None'}"
        )
    e.children(node, inner)


def emit_join_merge(e: Emitter, node: ProcessorNode, op: TableJoinMerge, scope: Scope) -> None:
    inner = scope if op.send_old_values else scope.bind("old")
    e.out(f"# {node.name}")
    if not op.send_old_values:
        e.out(f"{inner['old']} = None")
    e.children(node, inner)


def emit_pass_through(e: Emitter, node: ProcessorNode, _op: TablePassThrough, scope: Scope) -> None:
    e.out(f"# {node.name}")
    e.children(node, scope)


def emit_to_stream(e: Emitter, node: ProcessorNode, _op: ops.TableToStream, scope: Scope) -> None:
    inner = scope.bind("value")
    e.out(f"{inner['value']} = {scope['new']}  # {node.name}")
    e.children(node, inner)


def emit_repartition(e: Emitter, node: ProcessorNode, op: ops.TableRepartition, scope: Scope) -> None:
    if op.from_versioned:
        with e.out.block(f"if not {scope['is_latest']}:  # {node.name}"):
            e.out(scope.leave)
    with e.attempt(node, scope):
        e.out(f"new_pair = {_mapped(e, node, op.mapper, scope, 'new')}  # {node.name}")
        e.out(f"old_pair = {_mapped(e, node, op.mapper, scope, 'old')}")
        e.out("changes = regroup(new_pair, old_pair)")
    inner = scope.loop().bind("key", "new", "old")
    with e.out.block(f"for {inner['key']}, {inner['new']}, {inner['old']} in changes:"):
        e.children(node, inner)


def _mapped(e: Emitter, node: ProcessorNode, mapper: UserFunction, scope: Scope, part: str) -> str:
    return f"None if {scope[part]} is None else {e.call(node, mapper, scope, scope[part])}"


EMITTERS: dict[type, StepEmitter] = {
    ops.TableFilter: emit_filter,
    ops.TableMapValues: emit_map_values,
    TableJoinMerge: emit_join_merge,
    TablePassThrough: emit_pass_through,
    ops.TableToStream: emit_to_stream,
    ops.TableRepartition: emit_repartition,
}
