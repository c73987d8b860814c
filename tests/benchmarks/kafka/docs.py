"""``docs/benchmarks.md``: the figures of a full bench, how they came about, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.benchmarks.kafka.report import COLUMNS, REFERENCE, Row, cells

#: The page, with names in braces for what differs from bench to bench.
_PAGE = Path(__file__).with_name("page.md")


def render(rows: Sequence[Row], facts: Mapping[str, str], settings: Mapping[str, object], date: str) -> str:
    """The page. ``settings`` fills the names in the method's description."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| --- | --- |" + " ---: |" * (len(COLUMNS) - 2)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    machine = ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in facts.items())]
    return _PAGE.read_text().format(
        date=date,
        table="\n".join(lines),
        summary=_summary(rows),
        machine="\n".join(machine),
        reference=REFERENCE,
        **settings,
    )


def _summary(rows: Sequence[Row]) -> str:
    """The sentence to remember, if there is something to compare."""
    ratios = [
        row.ratio for row in rows if row.peer == "pystreams" and row.threads == 1 and row.ratio is not None
    ]
    if not ratios:
        return "Nothing to compare: Java was not measured."
    return (
        f"With one thread, pystreams processes {min(ratios):.1f} to {max(ratios):.1f} times as many records as Java."
        if len(ratios) > 1
        else f"With one thread, pystreams processes {ratios[0]:.1f} times as many records as Java."
    )
