"""The shared state of the steps of one builder, and the place of a step in the program."""

from __future__ import annotations

from dataclasses import dataclass, field

from pystreams.errors import TopologyError
from pystreams.serde.base import AnySerde
from pystreams.topology.graph import Graph, GraphNode
from pystreams.topology.names import CHANGELOG_SUFFIX, NameGenerator
from pystreams.user_code import caller


@dataclass(eq=False, slots=True)
class Context:
    """The graph under construction, the counter for generated names, and the list of unnamed stores and topics."""

    graph: Graph = field(default_factory=Graph)
    names: NameGenerator = field(default_factory=NameGenerator)
    _unnamed: dict[str, list[str]] = field(default_factory=dict)
    #: The lines of the program that left something unnamed, in their order.
    _unnamed_places: dict[str, None] = field(default_factory=dict)

    def unnamed(self, kind: str, name: str) -> None:
        """Record that a store or internal topic has a generated name, though its content outlives the program."""
        self._unnamed.setdefault(kind, []).append(name)
        self._unnamed_places[str(caller() or "")] = None

    def unnamed_store(self, name: str, *, logged: bool = True) -> None:
        """Record that a store has a generated name, and so has its changelog if it is ``logged``."""
        self.unnamed("store", name)
        if logged:
            self.unnamed("changelog topic", f"{name}{CHANGELOG_SUFFIX}")

    def check_all_named(self) -> None:
        """Raise ``TopologyError`` if a store or internal topic has a generated name. Source: KIP-1111."""
        if self._unnamed:
            spelled = "; ".join(f"{kind} {', '.join(names)}" for kind, names in self._unnamed.items())
            raise TopologyError(
                f"these stores and internal topics have generated names: {spelled}",
                where=", ".join(filter(None, self._unnamed_places)),
                why="ensure_explicit_internal_resource_naming is set: a generated name may change with the program, "
                "and the state would be lost",
                hint="give name= to aggregations and tables, repartition= to groupings",
            )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StepPlace:
    """A step to which others can be added: its node, the sources that feed it, and the serdes of its results."""

    context: Context
    name: str
    node: GraphNode
    sources: frozenset[str]
    key: AnySerde
    value: AnySerde
    #: Whether the key was changed after the records were partitioned.
    needs_repartition: bool = False

    def __repr__(self) -> str:
        return f"{self.name}, key={self.key!r}, value={self.value!r}"

    def add(self, node: GraphNode) -> None:
        """Add ``node`` below this step."""
        self.context.graph.add(node, self.node)

    def check_same_builder(self, context: Context, name: str) -> None:
        """Raises ``TopologyError`` if ``name``, which is of ``context``, belongs to another builder."""
        if context is not self.context:
            raise TopologyError(
                f"{self.name} and {name} belong to different builders", hint="use one App for both"
            )

    def copartitioned_with(self, other: StepPlace) -> frozenset[str]:
        """The sources of both steps, which from now on must be co-partitioned."""
        self.check_same_builder(other.context, other.name)
        sources = self.sources | other.sources
        self.context.graph.copartition(sources)
        return sources
