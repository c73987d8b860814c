"""Finds the input topics that must be complete before others can be read: the node graph, cut at internal topics.

An internal topic needs all inputs whose records can reach its sink: along the edges of the graph, and through a store
that one node writes and another reads. These needs form a graph of *inputs* (a sub-topology and a topic). A cycle in it
would be a topic that feeds itself, which no order of slices can compute. A cycle of sub-topologies can be computed: one
of them runs again, with its state, for the inputs that were not complete at its first run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pystreams.dsl.operators.transform_values import TableTransformValues
from pystreams.errors import TopologyError
from pystreams.topology.built import BuiltTopology, SubTopology
from pystreams.topology.nodes import Process, ProcessorNode, SinkNode, SourceNode


class Input(NamedTuple):
    """A topic as a sub-topology reads it."""

    subtopology: int
    topic: str


@dataclass(frozen=True, slots=True)
class Visit:
    """Inputs that a sub-topology processes together, because all of them are complete."""

    subtopology: int
    topics: tuple[str, ...]


def visits(built: BuiltTopology, topics: Mapping[int, Sequence[str]]) -> list[Visit]:
    """The order in which to compute an application; ``topics`` are the inputs of each sub-topology.

    Raises ``TopologyError`` for an internal topic that feeds itself.
    """
    needs = _needs(built, topics)
    _refuse_cycles(built, needs)
    done: set[Input] = set()
    order: list[Visit] = []
    waiting = {sub: list(of_sub) for sub, of_sub in topics.items() if of_sub}
    while waiting:
        ready = {
            sub: [topic for topic in left if needs[Input(sub, topic)] <= done]
            for sub, left in waiting.items()
        }
        sub = _next(waiting, ready, needs)
        order.append(Visit(sub, tuple(ready[sub])))
        done.update(Input(sub, topic) for topic in ready[sub])
        waiting[sub] = [topic for topic in waiting[sub] if topic not in ready[sub]]
        if not waiting[sub]:
            del waiting[sub]
    return order


def _next(
    waiting: Mapping[int, list[str]],
    ready: Mapping[int, list[str]],
    needs: Mapping[Input, frozenset[Input]],
) -> int:
    """The sub-topology to compute next: one whose inputs are all complete, otherwise one that waits for itself."""
    whole = [sub for sub, left in waiting.items() if ready[sub] == left]
    if whole:
        return min(whole)
    some = [sub for sub in waiting if ready[sub]]
    waits_for_itself = [
        sub
        for sub in some
        if all(
            any(other.subtopology == sub for other in _closure(Input(sub, topic), needs))
            for topic in waiting[sub]
            if topic not in ready[sub]
        )
    ]
    return min(waits_for_itself or some)


def _needs(built: BuiltTopology, topics: Mapping[int, Sequence[str]]) -> dict[Input, frozenset[Input]]:
    feeders: dict[str, set[Input]] = {}
    for sub in built.subtopologies:
        for topic in topics.get(sub.id, ()):
            source = sub.source_for(topic)
            for sink in () if source is None else _reached_sinks(sub, source):
                feeders.setdefault(sink, set()).add(Input(sub.id, topic))
    own = built.internal_topics
    return {
        Input(sub, topic): frozenset(feeders.get(topic, ())) if topic in own else frozenset()
        for sub, of_sub in topics.items()
        for topic in of_sub
    }


def _reached_sinks(sub: SubTopology, source: SourceNode) -> Iterable[str]:
    """The topics that records of ``source`` can influence."""
    nodes = {node.name: node for node in sub.nodes}
    readers = _readers_of_writers(sub)
    found: set[str] = set()
    stack = [source.name]
    while stack:
        name = stack.pop()
        if name in found:
            continue
        found.add(name)
        stack += [child.name for child in sub.children[name]]
        stack += readers.get(name, ())
    reached = (nodes[name] for name in found)
    return {node.topic for node in reached if isinstance(node, SinkNode) and node.topic is not None}


def _readers_of_writers(sub: SubTopology) -> dict[str, list[str]]:
    """The nodes that see what a node writes to its stores.

    The step that was given a store first makes it and writes it; later ones of the language only read. Processors and
    transformers of the program's may write any store that they have.
    """
    users: dict[str, list[ProcessorNode]] = {}
    for node in sub.nodes:
        if isinstance(node, ProcessorNode):
            for store in node.stores:
                users.setdefault(store, []).append(node)
    readers: dict[str, list[str]] = {}
    for sharing in users.values():
        for i, node in enumerate(sharing):
            if i == 0 or runs_processor(node):
                readers.setdefault(node.name, []).extend(other.name for other in sharing if other is not node)
    return readers


def runs_processor(node: ProcessorNode) -> bool:
    """Whether the step runs a processor or a transformer of the program's, or one that a processor wrapper has put
    around it: it may write to each of its stores, read global ones, schedule, and keep attributes."""
    return node.supplier is not None or isinstance(node.operation, Process | TableTransformValues)


def _closure(input: Input, needs: Mapping[Input, frozenset[Input]]) -> set[Input]:
    """All inputs that an input needs, directly or indirectly."""
    found: set[Input] = set()
    stack = [*needs[input]]
    while stack:
        other = stack.pop()
        if other not in found:
            found.add(other)
            stack += needs[other]
    return found


def _refuse_cycles(built: BuiltTopology, needs: Mapping[Input, frozenset[Input]]) -> None:
    for input in sorted(needs):
        if input in _closure(input, needs):
            raise TopologyError(
                f"topic {input.topic} feeds itself, so it cannot be computed from history",
                where=f"application {built.application_id}, sub-topology {input.subtopology}",
                why="each of its records may depend on earlier records of the same topic",
                hint="break the cycle, or let the application run live from the beginning",
            )
