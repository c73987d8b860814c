"""The ways in which aggregations are computed: chosen when a backfill is planned, and changed where one fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.plan.combining import behind_topics, why_records
from pystreams.backfill.plan.folding import why_updates
from pystreams.backfill.plan.manifest import Manifest
from pystreams.backfill.plan.slices import BackfillPlan, Slice


def with_ways(
    manifest: Manifest, loaded: LoadedApplication, plan: BackfillPlan, *, exact_updates: bool = False
) -> Manifest:
    """The manifest with the ways of all steps: see ``Manifest.updates`` and ``Manifest.records``."""
    updates = why_updates(loaded, exact_updates=exact_updates)
    records = why_records(loaded.built, plan, updates, continues=manifest.previous_id is not None)
    return replace(manifest, updates=updates, records=records)


def without_holding(
    manifest: Manifest, loaded: LoadedApplication, plan: BackfillPlan, failed: Slice, why: str
) -> Manifest:
    """The manifest in which no step of a slice that ``failed`` holds results, nor one behind a topic that it writes.
    Slices that have written partials to it are computed again."""
    steps = {node.name for node in loaded.built.subtopologies[failed.subtopology].nodes}
    topics = {
        one.topic
        for one in behind_topics(loaded.built)
        if one.node.name in manifest.combined and (one.node.name in steps or one.topic in failed.repartitions)
    }
    behind = {one.node.name for one in behind_topics(loaded.built) if one.topic in topics}
    again = {one.index for one in plan.slices if topics.intersection(one.repartitions)}
    changed = replace(
        manifest,
        updates=_changed(manifest.updates, steps, why),
        records=_changed(manifest.records, behind, why),
    )
    return changed.without_slices(again)


def _changed(reasons: Mapping[str, str], steps: Collection[str], why: str) -> dict[str, str]:
    return {step: why if step in steps and not reason else reason for step, reason in reasons.items()}
