"""A backfill that continues an earlier one, from its offsets, with its stores, partition times and operator state.

It reads the staged state in place. So a job that runs every night keeps tables up to date, and reads
each record once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pystreams.backfill.compute.executor import CarriedState
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.backfill.locations import shown
from pystreams.backfill.plan.manifest import Manifest, Status
from pystreams.backfill.plan.slices import BackfillPlan
from pystreams.backfill.sources import Source
from pystreams.backfill.sources.last_records import difference
from pystreams.backfill.sources.ranges import InputRange
from pystreams.backfill.staging.port import Staging
from pystreams.errors import StateError, TopicError
from pystreams.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Continuation:
    """The part of an earlier backfill that a later one needs: its input ranges, the state of its tasks by sub-topology,
    its id, and its boundaries between tables and the log. ``approximate``: its offsets are made up, and so are those of
    its continuation."""

    inputs: Sequence[InputRange] = ()
    carried: Mapping[int, CarriedState] = field(default_factory=dict)
    previous_id: str | None = None
    approximate: bool = False
    boundaries: Mapping[str, int] = field(default_factory=dict)

    @property
    def starts(self) -> dict[TopicPartition, int]:
        """By input partition the first offset to read."""
        return {input.partition: input.end for input in self.inputs}


def go_on(previous: Staging, plan: BackfillPlan) -> Continuation:
    """The continuation of the backfill in ``previous`` by one with this plan.

    Raises ``StateError`` if there is none, or one that was not computed to its end; ``TopologyError``, naming the first
    difference, if it is another application's or one of topics that are partitioned in another way.
    """
    manifest = previous.read_manifest()
    if manifest is None:
        raise StateError(
            "there is no earlier backfill to continue",
            where=shown(previous.location),
            hint="name the staging folder of a finished backfill, or begin without an earlier one",
        )
    if manifest.status is Status.CUT:
        raise StateError(
            "the earlier backfill was not computed to its end, so it cannot be continued",
            where=shown(previous.location),
            hint="finish it first (resume)",
        )
    manifest.check_plan(plan)
    previous = previous.with_slices(manifest.folders)
    carried: dict[int, CarriedState] = {}
    for one in plan.slices:
        if one.final:
            outcomes = tuple(_anew(outcome) for outcome in previous.outcomes(one.index, one.tasks))
            carried[one.subtopology] = CarriedState(previous, one.index, outcomes)
    return Continuation(
        manifest.inputs, carried, manifest.backfill_id, manifest.approximate, manifest.boundaries
    )


def check_source(before: Continuation, source: Source) -> None:
    """Raises ``TopicError`` for topics that are not those that the earlier backfill has read, though their offsets fit:
    they hold another record where it ended."""
    if before.approximate or source.approximate:
        return
    lasts = {input.partition: input.last for input in before.inputs if input.last is not None}
    found = source.last_before({partition: last.offset + 1 for partition, last in lasts.items()})
    for partition, last in lasts.items():
        now = found.get(partition)
        if now is not None and now.offset == last.offset and now != last:
            raise TopicError(
                f"topic {partition.topic} is not the one that the earlier backfill has read",
                where=source.description,
                why=f"{partition} has a different record at offset {last.offset}: {difference(last, now)}",
                hint="use the source of the earlier backfill, or begin a backfill that does not continue it",
            )


def check_continued(manifest: Manifest, before: Continuation) -> None:
    """Raises ``StateError`` if the resumed backfill continues a different one than the one given now."""
    if manifest.previous_id != before.previous_id:
        raise StateError(
            "the backfill continues a different earlier backfill",
            where=f"application {manifest.application_id}, backfill {manifest.backfill_id}",
            why=f"it continues backfill {manifest.previous_id or 'none'}, but the one given now is "
            f"{before.previous_id or 'none'}",
            hint="resume it with the same earlier backfill, or begin a new one in another folder",
        )


def _anew(outcome: TaskOutcome) -> TaskOutcome:
    """A task's outcome as the start of the next backfill: its output begins new queues, because the old ones have been
    processed."""
    return replace(outcome, sequences={}, written={}, stores={})
