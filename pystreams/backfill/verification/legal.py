"""Why the entries of a store may differ from live ones though both are right: what is noted of its step, and of those
before it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Final

from pystreams.backfill.compute.backfill_result import BackfillResult
from pystreams.backfill.plan.notes import PlanNote, notes
from pystreams.plural import counted
from pystreams.topology.built import BuiltTopology
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode

_LATE: Final = (
    "history drops {records} as too late, which a live application may have kept while its stream time waited for "
    "tasks that lag"
)
_HELD: Final = (
    "while the stream time of a live application waits for tasks that lag, it holds back more changes, and emits less "
    "often"
)


def reasons_to_differ(result: BackfillResult) -> dict[str, tuple[str, ...]]:
    """By store, the notes that concern it; stores without any are not in it."""
    built = result.loaded.built
    following = _following(built)
    nodes = {node.name: node for sub in built.subtopologies for node in sub.nodes}
    found: dict[str, list[str]] = {}
    for note in chain(notes(result.plan, result.loaded, result.manifest.folded), _of_waiting(result)):
        if note.kind not in ("one legal result", "exempt"):
            continue
        for store in sorted(_stores_behind(note, nodes, following)):
            found.setdefault(store, []).append(f"{note.step}: {note.text}")
    return {store: tuple(texts) for store, texts in found.items()}


def _of_waiting(result: BackfillResult) -> Iterator[PlanNote]:
    """Notes on steps whose stream time a live application holds back while it catches up."""
    buffers = {spec.name for spec in result.loaded.built.stores if spec.kind == "buffer"}
    for one in result.plan.slices:
        if not any(input.internal for input in one.inputs):
            continue
        for late in result.manifest.slices[one.index].late:
            records = counted(late.records, "record")
            yield PlanNote("one legal result", late.step, _LATE.format(records=records))
        for node in result.loaded.built.subtopologies[one.subtopology].nodes:
            if isinstance(node, ProcessorNode) and buffers.intersection(node.stores):
                yield PlanNote("one legal result", node.name, _HELD)


def _stores_behind(
    note: PlanNote, nodes: Mapping[str, Node], following: Mapping[str, Collection[str]]
) -> set[str]:
    """The stores that a note concerns."""
    if note.step not in nodes:
        # A store; or topics: those that are read concern what their sources feed.
        topics = note.step.split(", ")
        starts = [n.name for n in nodes.values() if isinstance(n, SourceNode) and set(n.topics) & set(topics)]
        stores = {note.step} if note.kind == "exempt" else set()
    else:
        starts, stores = [note.step], set()
    waiting = [*chain.from_iterable(following[name] for name in starts)] if note.behind else starts
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += following[name]
    return stores.union(*(node.stores for name in reached if isinstance(node := nodes[name], ProcessorNode)))


def _following(built: BuiltTopology) -> dict[str, list[str]]:
    """By node, those that see what it does: its children, the readers of an internal topic that it writes, and the
    nodes that share a store with it."""
    return {
        node.name: [*dict.fromkeys(_seen_by(built, node))]
        for sub in built.subtopologies
        for node in sub.nodes
    }


def _seen_by(built: BuiltTopology, node: Node) -> Iterator[str]:
    for sub in built.subtopologies:
        yield from (child.name for child in sub.children.get(node.name, ()))
        if isinstance(node, SinkNode) and node.topic in built.internal_topics:
            source = sub.source_for(node.topic or "")
            if source is not None:
                yield source.name
        if isinstance(node, ProcessorNode):
            yield from (
                other.name
                for other in sub.nodes
                if isinstance(other, ProcessorNode)
                and other is not node
                and set(node.stores) & set(other.stores)
            )
