"""The oldest times that output records of an application can have, computed from the times of its inputs.

A result has the time of the record that caused it. If two records cause a result, it has the later time; in a join of a
stream with a table it always has the time of the stream's record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from pystreams.dsl.operators.foreign_key_join import ForeignTableJoin, SubscriptionJoin
from pystreams.dsl.operators.stream_join import StreamJoin
from pystreams.dsl.operators.table_join import TableJoin
from pystreams.dsl.operators.transform_values import TableTransformValues
from pystreams.ids import TopicPartition
from pystreams.topology.built import BuiltTopology, SubTopology
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode, is_processor

#: A time (ms) and the partition of the record that has it. The least of several is the oldest.
Oldest: TypeAlias = tuple[int, TopicPartition]


class Reach(NamedTuple):
    """The oldest time that results certainly have (unless a filter drops them), and the oldest that they may have, if a
    user's step or the order of two records decides. None: no record is known to reach the node."""

    sure: Oldest | None = None
    possible: Oldest | None = None


def oldest_outputs(built: BuiltTopology, inputs: Mapping[str, Oldest]) -> dict[str, Reach]:
    """The times that reach each topic that the application writes to, including its changelogs. ``inputs`` are the
    oldest records of the external topics."""
    read = {topic: Reach(oldest, oldest) for topic, oldest in inputs.items()}
    written: dict[str, Reach] = {}
    while True:
        # Records that are written to a topic that the application reads itself continue from there.
        topics = {topic: _first([read.get(topic), written.get(topic)]) for topic in {*read, *written}}
        more = _written_once(built, topics)
        if more == written:
            return written
        written = more


def older_than_limits(
    written: Mapping[str, Oldest | None], limits: Mapping[str, int], now_ms: int
) -> dict[str, Oldest]:
    """By topic, in the order of ``limits`` (the ages in ms from which topics delete), the times that are older."""
    return {
        topic: oldest
        for topic, limit_ms in limits.items()
        if (oldest := written.get(topic)) is not None and now_ms - oldest[0] > limit_ms
    }


def _written_once(built: BuiltTopology, topics: Mapping[str, Reach]) -> dict[str, Reach]:
    written: dict[str, Reach] = {}
    for sub in built.subtopologies:
        reached = _SubTopologyReach(sub, topics)
        for node in sub.nodes:
            if isinstance(node, SinkNode) and node.topic is not None:
                written[node.topic] = _first([written.get(node.topic), reached.nodes[node.name]])
        for store, changelog in sub.changelogs.items():
            written[changelog] = reached.store(store)
    return written


class _SubTopologyReach:
    """The times that reach each node of a sub-topology."""

    def __init__(self, sub: SubTopology, topics: Mapping[str, Reach]) -> None:
        self._sub = sub
        self._topics = topics
        self._by_name: dict[str, Node] = {node.name: node for node in sub.nodes}
        self.nodes: dict[str, Reach] = {}
        for node in sub.nodes:
            self.nodes[node.name] = self._behind(node)

    def store(self, name: str) -> Reach:
        """The times written to a store: by the step that owns it, or by a step of the user."""
        found: list[Reach] = []
        for node in self._sub.nodes:
            if not isinstance(node, ProcessorNode) or name not in node.stores:
                continue
            reach = self.nodes[node.name]
            if is_processor(node) or isinstance(node.operation, TableTransformValues):
                found.append(Reach(None, reach.possible))
            elif getattr(node.operation, "store", None) == name:
                found.append(reach)
        return _first(found)

    def _behind(self, node: Node) -> Reach:
        if isinstance(node, SourceNode):
            return _first(
                self._topics[topic] for topic in self._topics if self._sub.source_for(topic) is node
            )
        before = _first(self.nodes[parent] for parent in node.parents)
        if not isinstance(node, ProcessorNode):
            return before
        if is_processor(node) or isinstance(node.operation, ForeignTableJoin):
            # A row of the right table has results only if rows of the left table came before it.
            return Reach(None, before.possible)
        if isinstance(node.operation, SubscriptionJoin):
            return _later([before, *self._right_tables(node.operation)])
        sides = [self._by_name[parent] for parent in node.parents]
        if any(_is_side_of_join(side) for side in sides):
            return self._joined(sides)
        return before

    def _right_tables(self, join: SubscriptionJoin) -> list[Reach]:
        """The times that reach the right table of a foreign-key join."""
        return [
            self.nodes[parent]
            for node in self._sub.nodes
            if isinstance(node, ProcessorNode)
            and isinstance(node.operation, ForeignTableJoin)
            and node.operation.serdes.topic == join.serdes.topic
            for parent in node.parents
        ]

    def _joined(self, sides: Sequence[Node]) -> Reach:
        """The times after a join of both sides. A side that does not need a match gives results with its own records'
        times, and no other result is older."""
        alone = [self.nodes[side.name] for side in sides if not _needs_match(side)]
        return _first(alone) if alone else _later([self.nodes[side.name] for side in sides])


def _is_side_of_join(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and isinstance(node.operation, TableJoin | StreamJoin)


def _needs_match(side: Node) -> bool:
    operation = side.operation if isinstance(side, ProcessorNode) else None
    if isinstance(operation, TableJoin):
        return operation.kind.needs(right=operation.right)[1]
    return isinstance(operation, StreamJoin) and not operation.outer


def _first(reached: Iterable[Reach | None]) -> Reach:
    """The times where several streams are merged."""
    known = [reach for reach in reached if reach is not None]
    return Reach(
        min((reach.sure for reach in known if reach.sure is not None), default=None),
        min((reach.possible for reach in known if reach.possible is not None), default=None),
    )


def _later(reached: Sequence[Reach]) -> Reach:
    """The times where a result joins a record of each side and gets the later time. Earlier records of the other side
    may have any age, so the earlier time is possible, too."""
    sure = [reach.sure for reach in reached if reach.sure is not None]
    return Reach(max(sure) if len(sure) == len(reached) else None, _first(reached).possible)
