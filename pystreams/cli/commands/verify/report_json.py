"""The report of ``pystreams verify --json``, for programs: the content of one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pystreams.backfill.compute.backfill_result import BackfillResult
    from pystreams.backfill.verification.outcome import StoreVerified, Verified
    from pystreams.backfill.verification.shown_entries import ShownDifference


def verified_json(result: BackfillResult, verified: Verified) -> dict[str, Any]:
    """The comparison, and the entries that differ."""
    return {
        "application_id": verified.application_id,
        "equal": verified.equal,
        "inputs": {str(partition): end for partition, end in sorted(verified.offsets.items())},
        "stores": {name: _store(result, name, one) for name, one in verified.stores.items()},
        "not_compared": dict(verified.left_out),
    }


def _store(result: BackfillResult, name: str, one: StoreVerified) -> dict[str, Any]:
    from pystreams.backfill.verification.shown_entries import ShownEntries

    counts = one.counts
    return {
        "compared": counts.compared,
        "equal": counts.equal,
        "value_differs": counts.value,
        "timestamp_differs": counts.timestamp,
        "only_live": counts.only_live,
        "only_history": counts.only_history,
        "changed_since": counts.since,
        "expired": counts.expired,
        "may_differ": list(one.may_differ),
        "differences": [_difference(shown) for shown in ShownEntries(result, name).shown(one.differences)],
    }


def _difference(shown: ShownDifference) -> dict[str, Any]:
    return {
        "kind": shown.difference.kind,
        "partition": shown.difference.partition,
        "key": shown.key,
        **shown.times,
        "live": _side(shown.live),
        "history": _side(shown.history),
    }


def _side(entries: Sequence[dict[str, Any]]) -> Any:
    """One entry; null if there is none, a list if there are several."""
    return entries if len(entries) > 1 else entries[0] if entries else None
