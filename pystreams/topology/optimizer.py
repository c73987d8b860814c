"""The optimizations of the DSL's graph that ``topology_optimization`` allows.

Source: InternalStreamsBuilder.optimizeTopology.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pystreams.errors import TopologyError
from pystreams.topology.graph import (
    GraphNode,
    JoinGraphNode,
    NullKeyFilter,
    RepartitionGraphNode,
    Rewriting,
    TableSourceGraphNode,
)

ALL = "all"


def rewritings(allowed: str) -> list[Rewriting]:
    """The rewritings that ``topology_optimization`` allows, in Java's order."""
    names = allowed.split(",")
    return [rewrite for name, rewrite in _REWRITINGS.items() if ALL in names or name in names]


def reuse_source_topics(nodes: Sequence[GraphNode]) -> Mapping[str, str]:
    """Restore tables from the topics that they read, because a changelog would have the same contents."""
    for node in nodes:
        if isinstance(node, TableSourceGraphNode):
            node.reuses_topic = True
    return {}


#: Repartition topics to be merged, by the node after which the merged topic will be.
_Groups = dict[GraphNode, list[RepartitionGraphNode]]


def merge_repartition_topics(nodes: Sequence[GraphNode]) -> Mapping[str, str]:
    """Merge the repartition topics of all groupings and joins after one change of key into the first of them.

    ``nodes`` are those of the graph in the order in which they were added. Returns the names of removed nodes, each
    with the name of its replacement. Raises ``TopologyError`` where Java fails.
    """
    replaced: dict[str, str] = {}
    for changer, repartitions in _groups(nodes).items():
        if repartitions:
            one = _one_for_all(changer, repartitions)
            replaced.update((node.name, one.name) for node in repartitions)
    return replaced


def _groups(nodes: Sequence[GraphNode]) -> _Groups:
    groups: _Groups = {}
    for node in nodes:
        if node.changes_key:
            groups[node] = []
        elif isinstance(node, RepartitionGraphNode) and node.optimizable:
            changer = _key_changer(node)
            if changer is not None and node not in groups[changer]:
                groups[changer].append(node)
    _gather_behind_merges(groups, [node for node in nodes if node.merges])
    return groups


def _key_changer(node: GraphNode) -> GraphNode | None:
    """The step above a repartition topic that changes the key, if no step between them changes the value."""
    nearest = _upwards(node, lambda one: one.changes_key or one.changes_value)
    return nearest if nearest is not None and nearest is _upwards(node, lambda one: one.changes_key) else None


def _gather_behind_merges(groups: _Groups, merges: Iterable[GraphNode]) -> None:
    """Move repartition topics after a merge of streams, each with its own change of key, to the merge."""
    above: dict[GraphNode, list[GraphNode]] = {}
    for merge in merges:
        above[merge] = [
            changer
            for changer, repartitions in groups.items()
            if all(_child_above(node, merge) is not None for node in repartitions)
            and _child_above(merge, changer) is not None
        ]
    for merge, changers in above.items():
        groups[merge] = list(dict.fromkeys(node for changer in changers for node in groups[changer]))
    for changer in {changer for changers in above.values() for changer in changers}:
        del groups[changer]


def _one_for_all(changer: GraphNode, repartitions: Sequence[RepartitionGraphNode]) -> RepartitionGraphNode:
    one = _like(repartitions[0])
    for node in repartitions:
        child = _child_above(node, changer)
        if child is None:
            raise TopologyError(
                f"the repartition topics after {changer.name} cannot be merged",
                why=f"every path from it to {node.name} has a step that may change the key",
                hint="leave merge.repartition.topics out of topology_optimization",
            )
        one.add_child(child)
        if child in changer.children:
            changer.remove_child(child)
        for parent in list(node.parents):
            for below in list(node.children):
                parent.add_child(below)
            parent.remove_child(node)
        for below in list(node.children):
            node.remove_child(below)
    changer.add_child(one)
    # It is written before all steps after it.
    one.priority = changer.priority
    return one


def _like(first: RepartitionGraphNode) -> RepartitionGraphNode:
    """A node for the same topic. Its steps are named after the topic, as if the user had named it."""
    topic = first.source.topics[0]
    assert first.filter is not None, "repartition topics of streams have one"
    return RepartitionGraphNode(
        f"{topic}-source",
        replace(first.sink, name=f"{topic}-sink"),
        replace(first.source, name=f"{topic}-source"),
        filter=NullKeyFilter(f"{topic}-filter", first.filter.drop, first.filter.keep),
        optimizable=True,
    )


def _child_above(node: GraphNode, parent: GraphNode) -> GraphNode | None:
    """The child of ``parent`` on the path from ``parent`` to ``node``."""
    return _upwards(node, lambda one: parent in one.parents)


def _upwards(node: GraphNode, wanted: Callable[[GraphNode], bool]) -> GraphNode | None:
    """The first ``wanted`` node among this one, its parents and their parents, in Java's order."""
    if wanted(node):
        return node
    for parent in node.parents:
        if wanted(parent):
            return parent
        found = _upwards(parent, wanted)
        if found is not None:
            return found
    return None


def single_store_self_join(nodes: Sequence[GraphNode]) -> Mapping[str, str]:
    """Keep records only once in joins of a stream with itself. Raises ``TopologyError`` where Java fails."""
    for node in nodes:
        if not isinstance(node, JoinGraphNode) or node.with_itself is None or len(node.parents) != 1:
            continue
        parent, names = node.parents[0], [side[1] for side in node.sides]
        kept = [child for child in parent.children if child.name in names and child.priority < node.priority]
        if [child.name for child in kept] != names:
            raise TopologyError(
                f"the join {node.name} of a stream with itself cannot work with one store",
                why="the steps that store its records do not both follow the stream directly",
                hint="leave single.store.self.join out of topology_optimization",
            )
        parent.remove_child(kept[1])
        node.is_with_itself = True
    return {}


_REWRITINGS: Mapping[str, Rewriting] = {
    "reuse.ktable.source.topics": reuse_source_topics,
    "merge.repartition.topics": merge_repartition_topics,
    "single.store.self.join": single_store_self_join,
}
