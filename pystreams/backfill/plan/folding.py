"""Decides which steps of a slice fold: they keep their results until the end, because no other step needs earlier
ones."""

from __future__ import annotations

from collections.abc import Iterable

from pystreams.backfill.application import LoadedApplication
from pystreams.dsl.operators.base import FoldingOperation
from pystreams.engine.codegen.graph import is_object
from pystreams.topology.built import BuiltTopology, SubTopology
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode

_WANTED = "exact updates are wanted"
_NO_CACHE = "without a cache (statestore_cache_max_bytes=0) each update is emitted"


def why_updates(loaded: LoadedApplication, *, exact_updates: bool = False) -> dict[str, str]:
    """The aggregating steps by name, each with the reason why all of its updates are written; empty: it folds. With
    ``exact_updates``, none does."""
    general = _WANTED if exact_updates else "" if loaded.config.statestore_cache_max_bytes else _NO_CACHE
    return {
        node.name: general or _why_updates(loaded.built, sub, node, node.operation)
        for sub in loaded.built.subtopologies
        for node in sub.nodes
        if isinstance(node, ProcessorNode) and isinstance(node.operation, FoldingOperation)
    }


def _why_updates(
    built: BuiltTopology, sub: SubTopology, node: ProcessorNode, operation: FoldingOperation
) -> str:
    if node.supplier is not None:
        return "a processor is around it"
    if reason := operation.folds():
        return reason
    spec = next(spec for spec in sub.stores if spec.name == operation.store)
    if not spec.cached:
        return "its store has no cache"
    if spec.headers:
        return "its store keeps headers"
    readers = [other.name for other in sub.nodes if other is not node and spec.name in _stores(other)]
    if readers:
        return f"{readers[0]} reads its store"
    for after in sub.steps_after(node):
        if isinstance(after, SinkNode):
            if after.topic is None or after.topic in built.internal_topics:
                return f"{after.name} sends each update to other steps"
        elif is_object(after):
            return f"{after.name} sees each update"
    return ""


def _stores(node: Node) -> Iterable[str]:
    return node.stores if isinstance(node, ProcessorNode) else ()
