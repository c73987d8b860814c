"""The shapes of the picture as SVG, in light colours, or in dark ones if the reader's browser prefers them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Final

from pystreams.topology.picture.layout import Point, Size

#: Width of a letter in the font, and height of a line, in pixels.
_LETTER: Final = 7.3
LINE: Final = 16.0
_PADDING: Final = Size(12, 9)
_LETTERS_MAX: Final = 30
_LID: Final = 7.0
_ARROW: Final = 6.0

#: CSS of the shapes, for light and for dark pages.
_LOOKS: Final = (
    (".page", "fill: #ffffff; stroke: #d0d7de", "fill: #0d1117; stroke: #30363d"),
    (".sub", "fill: #f6f8fa; stroke: #8c959f", "fill: #161b22; stroke: #6e7681"),
    (".step .shape", "fill: #ffffff; stroke: #57606a", "fill: #21262d; stroke: #8b949e"),
    (".topic .shape", "fill: #ddf4ff; stroke: #0969da", "fill: #0c2d6b; stroke: #58a6ff"),
    (".store .shape", "fill: #fff8c5; stroke: #9a6700", "fill: #3d2e00; stroke: #d29922"),
    (".edge", "stroke: #57606a", "stroke: #8b949e"),
    (".arrow", "fill: #57606a", "fill: #8b949e"),
    ("text", "fill: #1f2328", "fill: #e6edf3"),
    (".title", "fill: #57606a", "fill: #8b949e"),
)
#: CSS that is the same for both.
_FORMS: Final = (
    ("text", 'font: 12px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; text-anchor: middle'),
    (".title", "text-anchor: start"),
    (".edge", "fill: none; stroke-width: 1.3"),
    (".uses", "stroke-dasharray: 2 4"),
    (".elsewhere .shape", "stroke-dasharray: 4 3"),
)


def _style() -> str:
    """The style sheet. Its rules apply to this picture only, also when the picture is part of a page."""
    light = "".join(f".pystreams {what} {{{how}}}" for what, how, _ in _LOOKS)
    dark = "".join(f".pystreams {what} {{{how}}}" for what, _, how in _LOOKS)
    forms = "".join(f".pystreams {what} {{{how}}}" for what, how in _FORMS)
    return f"{forms}{light}@media (prefers-color-scheme: dark) {{{dark}}}"


def lines_of(name: str) -> list[str]:
    """A name broken into lines that are not too long, after its words."""
    lines = [""]
    for word in re.findall(r"[^-_. ]*[-_. ]*", name):
        if lines[-1] and len(lines[-1]) + len(word) > _LETTERS_MAX:
            lines.append("")
        lines[-1] += word
    return [line.strip() for line in lines if line.strip()] or [""]


def size_of(lines: Sequence[str], *, kind: str) -> Size:
    """The size of a shape with this text."""
    width = max(len(line) for line in lines) * _LETTER + 2 * _PADDING.width
    height = len(lines) * LINE + 2 * _PADDING.height
    return Size(width, height + (2 * _LID if kind == "store" else 0))


def shape(
    kind: str, name: str, lines: Sequence[str], center: Point, size: Size, *, elsewhere: bool = False
) -> str:
    """A ``step`` as a box, a ``topic`` as a box with round ends, a ``store`` as a cylinder; dashed if it is
    ``elsewhere``. ``data-box`` has left, top, width and height, ``data-name`` the name of what it stands for."""
    left, top = center.x - size.width / 2, center.y - size.height / 2
    if kind == "store":
        outline = _cylinder(left, top, size)
    else:
        radius = size.height / 2 if kind == "topic" and len(lines) == 1 else 14 if kind == "topic" else 4
        outline = f'<rect class="shape" {_box(left, top, size)} rx="{radius:.0f}"/>'
    first = center.y - (len(lines) - 1) * LINE / 2 + 4 + (_LID / 2 if kind == "store" else 0)
    texts = "".join(
        f'<text x="{center.x:.1f}" y="{first + n * LINE:.1f}">{escape(line)}</text>'
        for n, line in enumerate(lines)
    )
    data = f'data-name="{escape(name)}" data-box="{left:.1f} {top:.1f} {size.width:.1f} {size.height:.1f}"'
    return f'<g class="{kind}{" elsewhere" if elsewhere else ""}" {data}>{outline}{texts}</g>'


def frame(kind: str, name: str, title: str, corner: Point, size: Size) -> str:
    """A box around a part of the picture."""
    data = f'data-name="{escape(name)}" data-box="{corner.x:.1f} {corner.y:.1f} {size.width:.1f} {size.height:.1f}"'
    return (
        f'<g class="frame" {data}><rect class="{kind}" {_box(corner.x, corner.y, size)} rx="8"/>'
        f'<text class="title" x="{corner.x + 12:.1f}" y="{corner.y + 20:.1f}">{escape(title)}</text></g>'
    )


def edge(points: Sequence[Point], *, uses: bool = False) -> str:
    """A line through points, curved where the column changes, with an arrow at its end, unless it shows that a step
    ``uses`` a store."""
    path = f"M{points[0].x:.1f},{points[0].y:.1f}"
    end = points[-1] if uses else Point(points[-1].x, points[-1].y - _ARROW)
    for one, other in pairwise([*points[:-1], end]):
        if one == other:
            continue
        middle = (one.y + other.y) / 2
        path += (
            f"L{other.x:.1f},{other.y:.1f}"
            if abs(one.x - other.x) < 0.5
            else f"C{one.x:.1f},{middle:.1f} {other.x:.1f},{middle:.1f} {other.x:.1f},{other.y:.1f}"
        )
    line = f'<path class="edge{" uses" if uses else ""}" d="{path}"/>'
    if uses:
        return line
    x, y = points[-1]
    tip = f"M{x:.1f},{y:.1f}l{-_ARROW / 1.5:.1f},{-_ARROW - 2:.1f}h{_ARROW / 0.75:.1f}z"
    return f'{line}<path class="arrow" d="{tip}"/>'


def page(parts: Sequence[str], size: Size, title: str, *, styled: bool) -> str:
    """The whole SVG. Without ``styled`` the page around it has the style sheet."""
    width, height = size
    fitting = ' style="max-width: 100%; height: auto"' if styled else ""
    style = f"<style>{_style()}</style>" if styled else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pystreams" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}"{fitting} role="img">'
        f"<title>{escape(title)}</title>{style}"
        f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8"/>'
        f"{''.join(parts)}</svg>"
    )


def _box(left: float, top: float, size: Size) -> str:
    return f'x="{left:.1f}" y="{top:.1f}" width="{size.width:.1f}" height="{size.height:.1f}"'


def _cylinder(left: float, top: float, size: Size) -> str:
    width, height = size
    radius = width / 2
    arc = f"a{radius:.1f},{_LID} 0 0 0"
    return (
        f'<path class="shape" d="M{left:.1f},{top + _LID:.1f}v{height - 2 * _LID:.1f}{arc} {width:.1f},0'
        f"v{-(height - 2 * _LID):.1f}a{radius:.1f},{_LID} 0 0 0 {-width:.1f},0"
        f'a{radius:.1f},{_LID} 0 0 0 {width:.1f},0"/>'
    )
