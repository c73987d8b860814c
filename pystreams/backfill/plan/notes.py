"""Notes for the reader of a plan: results that are one of several legal ones, and effects that a backfill leaves
out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.plan.dependencies import runs_processor
from pystreams.backfill.plan.slices import BackfillPlan, Slice
from pystreams.dsl.operators.global_table_join import GlobalTableJoin
from pystreams.dsl.operators.stateless import FlatMap, Foreach, Map, Peek, Print, SelectKey
from pystreams.engine.node_defaults import extractor_of
from pystreams.timestamps import WallClockTimestamp
from pystreams.topology.built import SubTopology
from pystreams.topology.nodes import Process, ProcessorNode, SinkNode, SourceNode

#: ``one legal result``: a live run has several possible results, and the backfill gives one of them. ``exempt``: the
#: backfill does not reproduce this. ``side effect``: the backfill has this effect outside. ``not handed over``: the
#: live application starts without this. ``boundary`` and ``warning``: of the boundary between a table and the log.
NoteKind = Literal["one legal result", "exempt", "side effect", "not handed over", "boundary", "warning"]

_ARRIVAL = (
    "several tasks write its input: the live application reads their records as they arrive, the backfill in order of "
    "time (counts and sums are the same in any order)"
)
_MIXED = (
    "several tasks write to one of its partitions: records of the live application are in order of arrival, those of "
    "the backfill in order of time"
)
_FLUSHED = (
    "its cache forwards only the last update before a commit: the live application commits by time, the backfill by "
    "number of records"
    " (state is the same; statestore_cache_max_bytes=0 forwards all updates)"
)
_FOLDED = (
    "it emits the last result of each key, the live application the last update before each commit (state is the same; "
    "--exact-updates emits the updates of each commit)"
)
_GLOBAL = (
    "every record is joined with the whole of topic {topic} up to its cut; the live application joins it with the "
    "records that have arrived by then (the result is the same if the topic does not change while the live application "
    "runs)"
)
_SEES_GLOBAL = (
    "if it reads a global store, it finds the whole of its topic ({topics}) up to the cut; the live application finds "
    "the records that have arrived by then"
)
_KEY_CHANGING = (Map, SelectKey, FlatMap, Process)


@dataclass(frozen=True, slots=True)
class PlanNote:
    """``step`` is a node's name, a topic's or a store's. ``behind``: its own state is certain, what follows it is
    not."""

    kind: NoteKind
    step: str
    text: str
    behind: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.step}: {self.text}"


def notes(plan: BackfillPlan, loaded: LoadedApplication, folded: Collection[str] = ()) -> list[PlanNote]:
    """The notes of all slices, in order, each once. ``folded`` are the steps that fold."""
    found = (
        note
        for one in plan.slices
        for note in _of_slice(plan, one, loaded.built.subtopologies[one.subtopology], loaded, folded)
    )
    return list(dict.fromkeys(found))


def _of_slice(
    plan: BackfillPlan, one: Slice, sub: SubTopology, loaded: LoadedApplication, folded: Collection[str]
) -> Iterator[PlanNote]:
    if one.carried_from is not None:
        earlier = ", ".join(input.topic for input in plan.slices[one.carried_from].inputs)
        yield PlanNote(
            "one legal result",
            ", ".join(input.topic for input in one.inputs),
            f"its records are processed after all of {earlier}, because they are made from them",
        )
    yield from _order_dependent(plan, one, sub)
    yield from _cached(sub, loaded, folded)
    mixed = _changing_keys(sub)
    for node in sub.nodes:
        match node:
            case SourceNode():
                yield from _of_source(node, loaded)
            case SinkNode():
                yield from _of_sink(plan, one, node, mixed)
            case ProcessorNode():
                yield from _of_operation(one, node)
                yield from _of_global_table(node, loaded)
    for spec in sub.stores:
        if spec.max_entries is not None:
            yield PlanNote(
                "exempt", spec.name, "the order in which its entries were last used is not handed over"
            )
    # A store that is filled from a topic is restored from this topic.
    made = {spec.name for spec in sub.stores if spec.source_topic is not None}
    for store, changelog in one.stores.items():
        if changelog is None and one.final and store not in made:
            yield PlanNote(
                "not handed over", store, "the store has no changelog; the live application starts without it"
            )


def _of_source(node: SourceNode, loaded: LoadedApplication) -> Iterator[PlanNote]:
    if isinstance(extractor_of(node, loaded.config), WallClockTimestamp):
        yield PlanNote(
            "exempt", node.name, "records get the time of the cut, not the time at which they are read"
        )


def _of_operation(one: Slice, node: ProcessorNode) -> Iterator[PlanNote]:
    if runs_processor(node):
        yield PlanNote(
            "exempt",
            node.name,
            "wall-clock punctuations never fire, and values in its attributes are not handed over",
        )
        if any(input.internal for input in one.inputs):
            yield PlanNote(
                "exempt", node.name, "the offsets of internal topics that it sees differ from the live ones"
            )
    if isinstance(node.operation, Foreach | Peek | Print):
        yield PlanNote("side effect", node.name, "runs in the backfill, and again if a task is retried")


def _of_global_table(node: ProcessorNode, loaded: LoadedApplication) -> Iterator[PlanNote]:
    if isinstance(node.operation, GlobalTableJoin):
        table = node.operation.table
        for store in loaded.built.global_stores:
            if store.spec.name == table:
                yield PlanNote("one legal result", node.name, _GLOBAL.format(topic=store.topic))
    elif runs_processor(node) and loaded.built.global_stores:
        topics = ", ".join(sorted(loaded.built.global_topics))
        yield PlanNote("one legal result", node.name, _SEES_GLOBAL.format(topics=topics))


def _of_sink(plan: BackfillPlan, one: Slice, node: SinkNode, changing: set[str]) -> Iterator[PlanNote]:
    """Whether several tasks write to one partition of its topic."""
    if node.topic is None:
        yield PlanNote("exempt", node.name, "the topics that it writes to are known only at run time")
        return
    if node.topic not in one.sinks or one.tasks == 1:
        return
    as_wide = plan.partitions.get(node.topic) == one.tasks
    if node.partitioner is not None or not as_wide or changing.intersection(node.parents):
        yield PlanNote("one legal result", node.topic, _MIXED)


def _changing_keys(sub: SubTopology) -> set[str]:
    """The nodes whose records may have another key than the record of the input that they were made of."""
    found: set[str] = set()
    for node in sub.nodes:
        if not isinstance(node, ProcessorNode):
            continue
        changes = isinstance(node.operation, _KEY_CHANGING) and not (
            isinstance(node.operation, Process) and node.operation.fixed_key
        )
        if changes or found.intersection(node.parents):
            found.add(node.name)
    return found


def _cached(sub: SubTopology, loaded: LoadedApplication, folded: Collection[str]) -> Iterator[PlanNote]:
    """Steps whose updates a record cache holds back, if anything follows them."""
    if not loaded.config.statestore_cache_max_bytes:
        return
    cached = {spec.name for spec in sub.stores if spec.cached}
    followed = {parent for node in sub.nodes if not isinstance(node, SourceNode) for parent in node.parents}
    for node in sub.nodes:
        if isinstance(node, ProcessorNode) and node.name in followed and cached.intersection(node.stores):
            text = _FOLDED if node.name in folded else _FLUSHED
            yield PlanNote("one legal result", node.name, text, behind=True)


def _order_dependent(plan: BackfillPlan, one: Slice, sub: SubTopology) -> Iterator[PlanNote]:
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
            yield PlanNote("one legal result", node.name, _ARRIVAL)
