"""A backfill that goes on from an earlier one: with its stores, partition times and operator state, at its offsets.

What the earlier one staged is read where it lies. So a job that runs every night keeps tables up to date, and reads
each record once.
"""

from __future__ import annotations

from dataclasses import replace

from pystreams.backfill.executor import Carried
from pystreams.backfill.manifest import Manifest, Stage
from pystreams.backfill.outcome import Outcome
from pystreams.backfill.places import shown
from pystreams.backfill.plan import Plan
from pystreams.backfill.run import Continuation
from pystreams.backfill.sources import Source
from pystreams.backfill.sources.last_records import difference
from pystreams.backfill.staging import Staging
from pystreams.errors import StateError, TopicError


def go_on(previous: Staging, plan: Plan) -> Continuation:
    """What the backfill in ``previous`` left to one with this plan.

    Raises ``StateError`` if there is none, or one that was not computed to its end; ``TopologyError``, naming the first
    difference, if it is another application's or one of topics that are partitioned in another way.
    """
    manifest = previous.read_manifest()
    if manifest is None:
        raise StateError(
            "there is no earlier backfill to go on from",
            where=shown(previous.location),
            hint="name the staging folder of one that was computed, or begin without",
        )
    if manifest.stage is Stage.CUT:
        raise StateError(
            "the earlier backfill was not computed to its end, so nothing can go on from it",
            where=shown(previous.location),
            hint="finish it first (resume)",
        )
    manifest.check_plan(plan)
    previous = previous.with_slices(manifest.folders)
    carried: dict[int, Carried] = {}
    for one in plan.slices:
        if one.final:
            outcomes = tuple(_anew(outcome) for outcome in previous.outcomes(one.index, one.tasks))
            carried[one.subtopology] = Carried(previous, one.index, outcomes)
    return Continuation(manifest.inputs, carried, manifest.backfill_id, manifest.approximate)


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
                why=f"{partition} has another record at offset {last.offset}: {difference(last, now)}",
                hint="name the source of the earlier one, or begin a backfill that does not go on from it",
            )


def check_continued(manifest: Manifest, before: Continuation) -> None:
    """Raises ``StateError`` if a backfill that was begun goes on from another one than is said now."""
    if manifest.previous_id != before.previous_id:
        raise StateError(
            "the backfill was begun with another earlier one to go on from",
            where=f"application {manifest.application_id}, backfill {manifest.backfill_id}",
            why=f"it goes on from {manifest.previous_id or 'none'}, now it is {before.previous_id or 'none'}",
            hint="resume it with the same earlier backfill, or begin a new one in another folder",
        )


def _anew(outcome: Outcome) -> Outcome:
    """A task's outcome as the next backfill goes on from it: what it writes begins new queues, because what was in the
    old ones is processed."""
    return replace(outcome, sequences={}, written={}, stores={})
