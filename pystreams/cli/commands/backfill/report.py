"""Prints the plan of ``pystreams backfill`` before it runs, and its report after it.

Tables on a terminal; elsewhere tab-separated lines, each of which begins with the name of its table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pystreams.cli.terminal.console import note, output, show_table
from pystreams.dsl.operators.base import FoldingOperation
from pystreams.engine.failures.left_out import Fate
from pystreams.topology.nodes import ProcessorNode

if TYPE_CHECKING:
    from pystreams.backfill.compute.driver import Planned
    from pystreams.backfill.handover.hand_over import HandedOver
    from pystreams.backfill.plan.manifest import Manifest
    from pystreams.backfill.plan.notes import PlanNote
    from pystreams.backfill.plan.slices import BackfillPlan, Slice, SliceInput
    from pystreams.backfill.sources.ranges import InputRange

#: A digest is shown by its beginning: enough to compare two by eye.
_DIGEST_CHARACTERS = 16

#: The columns of ``aggregation_rows``.
AGGREGATION_COLUMNS = ["aggregation", "store", "gets", "emits", "why"]

#: More partitions than this are too many to read on a screen.
_PARTITIONS_SHOWN = 24


def show_rows(name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """One table; nothing if it is empty."""
    if not rows:
        return
    if output().is_terminal:
        show_table(columns, rows)
    else:
        show_table(columns, [[name, *row] for row in rows])


def show_plan(planned: Planned, writes: Sequence[Sequence[str]], notes: Sequence[PlanNote]) -> None:
    """Print what a backfill will do. ``writes`` are its outputs, each with its place."""
    plan, cut = planned.plan, planned.manifest
    show_rows(
        "slice",
        ["slice", "tasks", "reads", "records", "stores", "writes"],
        [_slice_row(one, cut, len(plan.slices)) for one in plan.slices],
    )
    show_rows("aggregation", AGGREGATION_COLUMNS, aggregation_rows(planned))
    show_rows("global table", ["global table", "topic", "records", "each worker"], _global_rows(planned))
    show_rows("input", ["input", "from", "up to", "records", "source"], _input_rows(planned))
    show_rows("write", ["it will write", "where"], writes)
    show_rows("note", ["to know", "step", "why"], [[one.kind, one.step, one.text] for one in notes])


def external_records(one: Slice, cut: Manifest) -> int:
    """The records that a slice reads from outside, at most: compaction and transactions leave holes."""
    topics = {input.topic for input in one.inputs if not input.internal}
    return sum(range.end - range.start for range in cut.inputs if range.partition.topic in topics)


def show_report(
    plan: BackfillPlan, manifest: Manifest, emitted: Mapping[str, int], handed_over: HandedOver | None
) -> None:
    """Print what a backfill has computed: records, those that were left out, entries and digest of each store, and
    where they were written."""
    show_rows(
        "slice",
        ["slice", "read", "records", "left out"],
        [
            [
                _number(one, len(plan.slices)),
                _reads(one.inputs),
                f"{done.records:,}",
                f"{sum(done.left_out.values()):,}",
            ]
            for one in plan.slices
            if (done := manifest.slices.get(one.index)) is not None
        ],
    )
    show_rows(
        "store",
        ["store", "entries", "digest"],
        [
            [name, f"{store.entries:,}", store.digest[:_DIGEST_CHARACTERS]]
            for name, store in manifest.final_stores(plan).items()
        ],
    )
    show_rows("emitted", ["emitted", "records"], [[topic, f"{n:,}"] for topic, n in sorted(emitted.items())])
    if handed_over is not None:
        show_handed_over(handed_over)


def show_handed_over(done: HandedOver) -> None:
    """Print for each store what the hand-over did to its changelog."""
    show_rows(
        "handed over",
        ["handed over", "written", "unchanged", "deleted"],
        [
            [store, f"{one.written:,}", f"{one.unchanged:,}", f"{one.deleted:,}"]
            for store, one in done.stores.items()
        ],
    )


def note_handed_over(place: str, application_id: str, reference: str, *, before: bool) -> None:
    """Print what to do next. ``before``: an earlier run has handed over, and this one changed nothing."""
    if before:
        note(f"It was already handed over to {place}: nothing was changed.")
    else:
        note(
            f"Handed over to {place}: {application_id} continues at the cut. Start it: pystreams run "
            f"{reference}"
        )


def note_boundaries(manifest: Manifest) -> None:
    """Print what is at the boundaries between tables and the log, and what looks like a loss there."""
    from pystreams.backfill.compute.summary import remarks_on_boundaries

    for sentence in remarks_on_boundaries(manifest):
        note(sentence)


def note_joins_in_vain(manifest: Manifest) -> None:
    """If many records of a join have found no match, and none has found one, print advice."""
    from pystreams.backfill.compute.summary import joins_in_vain_sentences

    for sentence in joins_in_vain_sentences(manifest):
        note(sentence)


def note_left_out(manifest: Manifest) -> None:
    """If records were left out or late, print what became of them, and how to keep them."""
    from pystreams.backfill.compute.summary import left_out, left_out_sentence

    sentence = left_out_sentence(manifest)
    if not sentence:
        return
    note(sentence)
    if left_out(manifest)[Fate.DROPPED.value]:
        note(
            "Records are dropped if they are too late for a window, or without a required key or value. -s "
            "dead_letter_dropped_records=true writes them to the dead-letter topic."
        )


def aggregation_rows(planned: Planned) -> list[list[str]]:
    """Rows for steps that could fold: what they get from their repartition topic, what they emit, and why that is
    everything."""
    stores = {
        node.name: node.operation.store
        for sub in planned.loaded.built.subtopologies
        for node in sub.nodes
        if isinstance(node, ProcessorNode) and isinstance(node.operation, FoldingOperation)
    }
    records = planned.manifest.records
    return [
        [
            step,
            stores[step],
            "partial results" if records.get(step) == "" else "each record",
            "each update" if why else "last results",
            records.get(step) or why,
        ]
        for step, why in planned.manifest.updates.items()
    ]


def _global_rows(planned: Planned) -> list[list[str]]:
    """Rows for global tables, which every task reads completely."""
    rows: list[list[str]] = []
    for store in planned.loaded.built.global_stores:
        records = sum(i.end - i.start for i in planned.manifest.inputs if i.partition.topic == store.topic)
        kept = "reads it once, to disk" if store.spec.persistent else "reads it for every task, to memory"
        rows.append([store.spec.name, store.topic, f"{records:,}", kept])
    return rows


def _input_rows(planned: Planned) -> list[list[str]]:
    """A row for each partition; for people who look at a screen, one for each topic if there are many."""
    ranges = planned.manifest.inputs
    if len(ranges) <= _PARTITIONS_SHOWN or not output().is_terminal:
        return [
            [str(i.partition), f"{i.start:,}", f"{i.end:,}", f"{i.end - i.start:,}", _place(planned, i)]
            for i in ranges
        ]
    by_topic: dict[str, list[InputRange]] = {}
    for range in ranges:
        by_topic.setdefault(range.partition.topic, []).append(range)
    return [
        [
            f"{topic}, {len(of)} partitions",
            "",
            "",
            f"{sum(i.end - i.start for i in of):,}",
            _place(planned, of[0]),
        ]
        for topic, of in by_topic.items()
    ]


def _place(planned: Planned, input: InputRange) -> str:
    """The place from which a partition is read."""
    from pystreams.backfill.sources import TopicSources

    source = planned.source
    return (
        source.of(input.partition.topic).description
        if isinstance(source, TopicSources)
        else source.description
    )


def _slice_row(one: Slice, cut: Manifest, count: int) -> list[str]:
    external = external_records(one, cut)
    upstream = sorted({index + 1 for input in one.inputs for index in input.upstream})
    estimate = [f"{external:,}"] if external or not upstream else []
    estimate += [f"result of slice {index}" for index in upstream]
    return [
        _number(one, count),
        str(one.tasks),
        _reads(one.inputs),
        " + ".join(estimate),
        ", ".join(one.stores) or "-",
        ", ".join((*one.repartitions, *one.sinks)) or "-",
    ]


def _number(one: Slice, count: int) -> str:
    return f"{one.index + 1} of {count}"


def _reads(inputs: Sequence[SliceInput]) -> str:
    return ", ".join(input.topic for input in inputs)
