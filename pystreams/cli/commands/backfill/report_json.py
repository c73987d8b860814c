"""The plan and the report of ``pystreams backfill --json``, for programs: the content of one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pystreams.cli.commands.backfill.report import AGGREGATION_COLUMNS, aggregation_rows
from pystreams.times import show_time

if TYPE_CHECKING:
    from pystreams.backfill.compute.driver import Planned
    from pystreams.backfill.handover.hand_over import HandedOver
    from pystreams.backfill.plan.manifest import Manifest
    from pystreams.backfill.plan.notes import PlanNote
    from pystreams.backfill.plan.slices import BackfillPlan


def plan_json(
    planned: Planned,
    staging: str,
    writes: Sequence[Sequence[str]],
    notes: Sequence[PlanNote],
    refused: str | None,
) -> dict[str, Any]:
    """The plan of a backfill. ``refused`` says why it would be refused now."""
    manifest = planned.manifest
    expected = planned.expected_records()
    return {
        **_head(manifest, staging),
        "slices": [
            {
                "slice": one.index + 1,
                "tasks": one.tasks,
                "reads": [input.topic for input in one.inputs],
                "records": expected[one.index],
                "stores": list(one.stores),
                "writes": [*one.repartitions, *one.sinks],
            }
            for one in planned.plan.slices
        ],
        "aggregations": [
            dict(zip(AGGREGATION_COLUMNS, row, strict=True)) for row in aggregation_rows(planned)
        ],
        "writes": [{"what": what, "where": where} for what, where in writes],
        "notes": [{"kind": one.kind, "step": one.step, "text": one.text} for one in notes],
        "refused": refused,
    }


def report_json(
    plan: BackfillPlan,
    manifest: Manifest,
    staging: str,
    emitted: Mapping[str, int],
    handed_over: HandedOver | None,
) -> dict[str, Any]:
    """The result of a backfill."""
    from pystreams.backfill.compute.summary import joins_in_vain

    done = [(one, manifest.slices[one.index]) for one in plan.slices if one.index in manifest.slices]
    return {
        **_head(manifest, staging),
        "slices": [
            {
                "slice": one.index + 1,
                "reads": [input.topic for input in one.inputs],
                "records": result.records,
                "left_out": dict(result.left_out),
                "late": [late._asdict() for late in result.late],
            }
            for one, result in done
        ],
        "stores": {
            name: {"entries": store.entries, "digest": store.digest}
            for name, store in manifest.final_stores(plan).items()
        },
        "boundaries": [remark._asdict() for remark in manifest.remarks],
        "joins_in_vain": [one.as_fields for one in joins_in_vain(manifest)],
        "emitted": dict(sorted(emitted.items())),
        "handed_over": None if handed_over is None else _handed_over(handed_over),
    }


def _head(manifest: Manifest, staging: str) -> dict[str, Any]:
    return {
        "application_id": manifest.application_id,
        "backfill_id": manifest.backfill_id,
        "previous_id": manifest.previous_id,
        "staging": staging,
        "cut_time": show_time(manifest.cut_time_ms),
        "inputs": {str(one.partition): {"start": one.start, "end": one.end} for one in manifest.inputs},
    }


def _handed_over(done: HandedOver) -> dict[str, Any]:
    return {
        "complete_before": done.complete_before,
        "stores": {
            name: {"written": one.written, "unchanged": one.unchanged, "deleted": one.deleted}
            for name, one in done.stores.items()
        },
    }
