"""What a plan's reader should know: which results are one of several legal ones, and what a backfill leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pystreams.backfill.application import Loaded
from pystreams.backfill.plan import Plan, Slice
from pystreams.dsl.operators.stateless import Foreach, Peek, Print
from pystreams.timestamps import WallClockTimestamp, resolve_extractor
from pystreams.topology.built import SubTopology
from pystreams.topology.nodes import Process, ProcessorNode, SinkNode, SourceNode

#: ``one legal result``: live has several, and the backfill gives one of them. ``exempt``: what it does not reproduce.
#: ``side effect``: what the outside sees of it. ``not handed over``: what the live application starts without.
NoteKind = Literal["one legal result", "exempt", "side effect", "not handed over"]

_ARRIVAL = (
    "several tasks write its input: live takes their records as they arrive, the backfill in order of time"
    " (counts and sums are the same in any order)"
)


@dataclass(frozen=True, slots=True)
class Note:
    """``step`` is a node's name, a topic's or a store's."""

    kind: NoteKind
    step: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.step}: {self.text}"


def notes(plan: Plan, loaded: Loaded) -> list[Note]:
    """The notes of all slices, in order, each once."""
    found = (
        note
        for one in plan.slices
        for note in _of_slice(plan, one, loaded.built.subtopologies[one.subtopology], loaded)
    )
    return list(dict.fromkeys(found))


def _of_slice(plan: Plan, one: Slice, sub: SubTopology, loaded: Loaded) -> Iterator[Note]:
    if one.carried_from is not None:
        earlier = ", ".join(input.topic for input in plan.slices[one.carried_from].inputs)
        yield Note(
            "one legal result",
            ", ".join(input.topic for input in one.inputs),
            f"its records are processed after all of {earlier}, because they are made from them",
        )
    yield from _order_dependent(plan, one, sub)
    for node in sub.nodes:
        match node:
            case SourceNode():
                yield from _of_source(node, loaded)
            case SinkNode():
                if node.topic is None:
                    yield Note("exempt", node.name, "which topics it writes shows only while it runs")
            case ProcessorNode():
                yield from _of_operation(one, node)
    for store, changelog in one.stores.items():
        if changelog is None and one.final:
            yield Note(
                "not handed over", store, "the store has no changelog; the live application starts without it"
            )


def _of_source(node: SourceNode, loaded: Loaded) -> Iterator[Note]:
    extractor = node.timestamp_extractor or loaded.config.default_timestamp_extractor
    if isinstance(resolve_extractor(extractor), WallClockTimestamp):
        yield Note("exempt", node.name, "records get the time of the cut, not of their being read")


def _of_operation(one: Slice, node: ProcessorNode) -> Iterator[Note]:
    match node.operation:
        case Process():
            yield Note(
                "exempt",
                node.name,
                "punctuation by wall-clock time never fires, what it keeps in attributes is not handed over",
            )
            if any(input.internal for input in one.inputs):
                yield Note(
                    "exempt", node.name, "offsets that it sees of an internal topic are not the live ones"
                )
        case Foreach() | Peek() | Print():
            yield Note("side effect", node.name, "runs in the backfill, again where a task is tried again")
        case _:
            return


def _order_dependent(plan: Plan, one: Slice, sub: SubTopology) -> Iterator[Note]:
    """Steps with stores behind an internal topic, unless a single queue leaves live no choice either."""
    internal = [input for input in one.inputs if input.internal]
    writers = sum(plan.slices[index].tasks for input in internal for index in input.upstream)
    if not internal or (writers == 1 and len(one.inputs) == 1):
        return
    behind: set[str] = set()
    fed = {source.name for input in internal if (source := sub.source_for(input.topic)) is not None}
    for node in sub.nodes:
        parents = () if isinstance(node, SourceNode) else node.parents
        if node.name not in fed and not behind.intersection(parents):
            continue
        behind.add(node.name)
        if isinstance(node, ProcessorNode) and node.stores:
            yield Note("one legal result", node.name, _ARRIVAL)
