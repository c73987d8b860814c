"""A picture of stream time: how far each partition has got in event time over the seconds of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tests.benchmarks.catch_up.bench import Outcome
from tests.benchmarks.catch_up.inputs import ORDERS
from tests.benchmarks.catch_up.watching import Look

_COLOURS = ("#1f5fa8", "#c2571a", "#2f8f4e", "#8a3f9c")
_INK, _FAINT = "#333333", "#dddddd"
_WIDTH, _HEIGHT, _LEFT, _TOP, _BETWEEN = 320, 260, 56, 70, 30
_FONT = 'font-family="sans-serif" font-size="12"'
_HOUR_MS = 3_600_000


def picture(outcomes: Sequence[Outcome], begin_ms: int, hours: float) -> str:
    """An SVG with a panel for each contestant, all with the same axis of event time."""
    width = _LEFT + len(outcomes) * (_WIDTH + _BETWEEN)
    height = _TOP + _HEIGHT + 62
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {_FONT}>',
        "<title>Stream time by partition while catching up</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        _text(
            _LEFT, 20, "Stream time by partition while catching up, in hours since the first order", bold=True
        ),
        *_legend(height - 14),
    ]
    for number, outcome in enumerate(outcomes):
        parts += _panel(outcome, _LEFT + number * (_WIDTH + _BETWEEN), begin_ms, hours, first=number == 0)
    return "\n".join([*parts, "</svg>\n"])


def _legend(y: float) -> Iterable[str]:
    yield f'<line x1="{_LEFT}" y1="{y - 4}" x2="{_LEFT + 28}" y2="{y - 4}" stroke="{_INK}" stroke-width="2"/>'
    yield _text(_LEFT + 36, y, "partitions of the orders")
    x = _LEFT + 200
    yield (
        f'<line x1="{x}" y1="{y - 4}" x2="{x + 28}" y2="{y - 4}" stroke="{_INK}" stroke-width="1.5" '
        'stroke-dasharray="4 3"/>'
    )
    yield _text(x + 36, y, "partitions of the topic before the windows")


def _panel(outcome: Outcome, left: float, begin_ms: int, hours: float, *, first: bool) -> Iterable[str]:
    whole_s = max(outcome.looks[-1].time_s, 0.1)
    bottom = _TOP + _HEIGHT
    share = outcome.lost / outcome.orders
    yield _text(left, _TOP - 26, outcome.contestant, bold=True)
    yield _text(left, _TOP - 9, f"{outcome.lost:,} orders lost ({share:.1%}), {outcome.seconds:.0f} s")
    for step in range(5):
        y = bottom - step * _HEIGHT / 4
        yield f'<line x1="{left}" y1="{y:.1f}" x2="{left + _WIDTH}" y2="{y:.1f}" stroke="{_FAINT}"/>'
        if first:
            yield _text(left - 8, y + 4, f"{step * hours / 4:g} h", anchor="end")
    for step in range(3):
        x = left + step * _WIDTH / 2
        anchor = ("start", "middle", "end")[step]
        yield _text(x, bottom + 18, f"{step * whole_s / 2:.0f} s", anchor=anchor)

    def point(look: Look, time: int) -> str:
        above = min(1.0, max(0.0, (time - begin_ms) / (hours * _HOUR_MS)))
        return f"{left + look.time_s / whole_s * _WIDTH:.1f},{bottom - above * _HEIGHT:.1f}"

    for at in sorted({at for look in outcome.looks for at in look.times if _drawn(at[0])}):
        points = " ".join(point(look, look.times[at]) for look in outcome.looks if at in look.times)
        style = 'stroke-width="2"' if at[0] == ORDERS else 'stroke-width="1.5" stroke-dasharray="4 3"'
        colour = _COLOURS[at[1] % len(_COLOURS)]
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" {style}/>'


def _drawn(topic: str) -> bool:
    """The orders, and what the windows read."""
    return topic == ORDERS or topic.endswith("sold-repartition")


def _text(x: float, y: float, text: str, *, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{_INK}"{weight}>{escape(text)}</text>'
