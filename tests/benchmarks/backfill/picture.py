"""A picture of the bench: for each job and spread a bar for each peer, by its records per second."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby

from tests.benchmarks.backfill.bench import Measured

#: What readers know a peer, a job or a spread by. Each peer keeps its colour.
PEERS: Mapping[str, tuple[str, str]] = {
    "live": ("live, two workers", "#8a8a8a"),
    "spark": ("backfill on Spark", "#1f5fa8"),
    "processes": ("backfill in two processes", "#5b9bd5"),
    "inline": ("backfill in one process", "#9dc3e6"),
    "loop": ("plain Python loop", "#c2571a"),
    "sql": ("native Spark SQL", "#2f8f4e"),
}
_JOBS = {
    "wordcount": "word count",
    "windows": "windowed sum by a function",
    "declared": "windowed sum, declared",
}
_SPREADS = {"even": "even partitions", "skewed": "90 % of the records in one partition"}

_INK = "#333333"
_FONT = 'font-family="sans-serif" font-size="12"'
_LEFT, _BARS, _RIGHT = 190, 380, 190
_BAR, _BETWEEN, _HEAD, _TOP = 16, 5, 30, 40


def picture(found: Sequence[Measured]) -> str:
    """An SVG; all bars have the same scale, and beside each stands its multiple of the live run."""
    fastest = max(one.rate for one in found)
    panels = [[*panel] for _, panel in groupby(found, key=lambda one: (one.job, one.spread))]
    height = _TOP + sum(_HEAD + len(panel) * (_BAR + _BETWEEN) for panel in panels) + 10
    width = _LEFT + _BARS + _RIGHT
    title = f"Records per second over {found[0].records:,} records"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {_FONT}>',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(12, 22, title, bold=True),
    ]
    top = _TOP
    for panel in panels:
        parts += _panel(panel, top, fastest)
        top += _HEAD + len(panel) * (_BAR + _BETWEEN)
    return "\n".join([*parts, "</svg>\n"])


def _panel(panel: Sequence[Measured], top: float, fastest: float) -> Iterable[str]:
    yield _text(12, top + 20, f"{_JOBS[panel[0].job]}, {_SPREADS[panel[0].spread]}", bold=True)
    live = next((one.rate for one in panel if one.peer == "live"), None)
    for number, one in enumerate(panel):
        name, colour = PEERS[one.peer]
        y = top + _HEAD + number * (_BAR + _BETWEEN)
        length = max(1.0, _BARS * one.rate / fastest)
        yield _text(_LEFT - 8, y + 12, name, anchor="end")
        yield f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>'
        times = "" if live is None else f", {one.rate / live:.1f} times live"
        yield _text(_LEFT + length + 6, y + 12, f"{one.rate:,.0f}{times}")


def _text(x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{_INK}"{weight}>{escape(text)}</text>'
