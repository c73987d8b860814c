"""Prints what ``pystreams verify`` has found: tables on a terminal, elsewhere tab-separated lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pystreams.cli.commands.backfill.report import show_rows
from pystreams.cli.terminal.console import note, output, text_or_json
from pystreams.plural import counted

if TYPE_CHECKING:
    from pystreams.backfill.compute.backfill_result import BackfillResult
    from pystreams.backfill.verification.outcome import StoreCounts, Verified
    from pystreams.backfill.verification.shown_entries import ShownDifference

_STORE_COLUMNS = [
    "store",
    "compared",
    "equal",
    "other value",
    "other timestamp",
    "only live",
    "only history",
    "changed since",
    "expired",
]
#: The first columns, which are always shown: store, compared, equal. Others are left out if all their numbers are 0.
_ALWAYS_SHOWN = 3


def show_verified(result: BackfillResult, verified: Verified) -> None:
    """Print the counts of each store, its first differences, and why right results may differ."""
    from pystreams.backfill.verification.shown_entries import ShownEntries

    show_rows("store", *_store_table(verified))
    show_rows(
        "difference",
        ["differs", "store", "partition", "key", "live", "history"],
        [
            [shown.difference.kind, name, str(shown.difference.partition), _key(shown), *_sides(shown)]
            for name, one in verified.stores.items()
            for shown in ShownEntries(result, name).shown(one.differences)
        ],
    )
    show_rows(
        "may differ",
        ["store", "a right result may differ, because of"],
        [
            [name, why]
            for name, one in verified.stores.items()
            if one.counts.different
            for why in one.may_differ
        ],
    )
    show_rows("not compared", ["not compared", "why"], [[*pair] for pair in verified.left_out.items()])


def nothing_compared(verified: Verified) -> bool:
    """Whether all keys have changed since the moment that was compared."""
    return bool(verified.counts.since) and not verified.counts.compared


def note_outcome(verified: Verified) -> None:
    """Print the outcome in words."""
    for name, one in verified.stores.items():
        if one.counts.different > len(one.differences):
            note(
                f"{len(one.differences):,} of the {one.counts.different:,} differences of store {name} shown: --limit "
                "shows more."
            )
    counts = verified.counts
    if counts.since:
        note(
            f"{counted(counts.since, 'key')} changed since the moment that was compared, "
            f"and {_were(counts.since)} left out."
        )
    if not verified.equal and not verified.atomic:
        note(
            "With processing_guarantee=at_least_once, the changelogs may be ahead of the committed offsets if the "
            "application was killed: run it until it has caught up, and verify again."
        )
    if nothing_compared(verified):
        note("Nothing was compared: verify when the application has less to do, or stop it.")
        return
    if verified.equal:
        note(f"Equal: {counted(counts.compared, 'key')} {_were(counts.compared)} compared.")
        return
    per_store = ", ".join(
        f"{one.counts.different:,} in store {name}"
        for name, one in verified.stores.items()
        if one.counts.different
    )
    note(f"Different: {counts.different:,} of {counted(counts.compared, 'key')} ({per_store}).")


def _store_table(verified: Verified) -> tuple[list[str], list[list[str]]]:
    """Columns and rows. On a screen, columns of zeros are left out."""
    rows = [[name, *_counts(one.counts)] for name, one in verified.stores.items()]
    if not output().is_terminal:
        return _STORE_COLUMNS, rows
    kept = [
        place
        for place in range(len(_STORE_COLUMNS))
        if place < _ALWAYS_SHOWN or any(row[place] != "0" for row in rows)
    ]
    return [_STORE_COLUMNS[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _counts(counts: StoreCounts) -> list[str]:
    numbers = (
        counts.compared,
        counts.equal,
        counts.value,
        counts.timestamp,
        counts.only_live,
        counts.only_history,
        counts.since,
        counts.expired,
    )
    return [f"{number:,}" for number in numbers]


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _key(shown: ShownDifference) -> str:
    """The key, with the times of a window or session."""
    return " ".join([text_or_json(shown.key), *(["…".join(shown.times.values())] if shown.times else [])])


def _sides(shown: ShownDifference) -> list[str]:
    """Live and history. Timestamps are shown where they differ, headers where nothing else does."""
    bare = [[text_or_json(entry["value"]) for entry in side] for side in (shown.live, shown.history)]
    alike = bare[0] == bare[1]
    return [_side(side, whole=alike) for side in (shown.live, shown.history)]


def _side(entries: Sequence[dict[str, Any]], *, whole: bool) -> str:
    if not entries:
        return "-"
    return ", ".join(_entry(entry, whole=whole) for entry in entries)


def _entry(entry: dict[str, Any], *, whole: bool) -> str:
    value = "deleted" if entry["value"] is None else text_or_json(entry["value"])
    if not whole:
        return value
    headers = f" headers {json.dumps(entry['headers'], ensure_ascii=False)}" if "headers" in entry else ""
    return f"{value} at {entry['timestamp']}{headers}"
