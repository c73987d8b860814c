"""Draws stacks as a flame graph: an SVG without scripts, fonts or other external resources, with light colours, or dark
ones if the reader's browser prefers them.

A caller is drawn above the functions that it calls. The width of a function shows the time in it and in those that it
calls. Where a function of generated code is on the stack, the graph shows the step.

Source: B. Gregg, The Flame Graph, Communications of the ACM 59(6), 2016.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Final

from pystreams.profiling.places import WorkKind, file_of, last_owned, work_of
from pystreams.profiling.sampler import Stack, StackFrame

_WIDTH: Final = 1200.0
_MARGIN: Final = 12.0
_ROW: Final = 19.0
_HEADER: Final = 56.0
#: The width of a letter, in pixels.
_LETTER: Final = 6.7
#: A box that is narrower could not be seen.
_BOX_MIN: Final = 0.4

#: CSS of the boxes, for light and for dark pages.
_LOOKS: Final = (
    (".page", "fill: #ffffff; stroke: #d0d7de", "fill: #0d1117; stroke: #30363d"),
    (".thread", "fill: #d0d7de", "fill: #30363d"),
    (".step", "fill: #54aeff", "fill: #1158c7"),
    (".function", "fill: #ffa657", "fill: #bc4c00"),
    (".store", "fill: #eac54f", "fill: #7d4e00"),
    (".broker", "fill: #d2a8ff", "fill: #6639ba"),
    (".serde", "fill: #7ee787", "fill: #1a7f37"),
    (".engine", "fill: #afb8c1", "fill: #57606a"),
    ("text", "fill: #1f2328", "fill: #f0f6fc"),
)
_FORMS: Final = (
    ("text", 'font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; pointer-events: none'),
    (".title", "font-size: 14px"),
    ("g:hover > rect", "opacity: 0.75"),
)
_LEGEND: Final = (
    ("thread", "what the thread does"),
    ("step", "steps"),
    ("function", "the program and libraries"),
    ("store", "stores"),
    ("broker", "log"),
    ("serde", "serdes"),
    ("engine", "pystreams"),
)
_KINDS: Final = {"state": "store", "broker": "broker", "serde": "serde"}


@dataclass(slots=True)
class _Box:
    """A function, a step or an activity, with the time in it and in what it calls (ms)."""

    label: str
    kind: str
    ms: float = 0.0
    #: By label.
    inner: dict[str, _Box] = field(default_factory=dict)

    def depth(self) -> int:
        return 1 + max((box.depth() for box in self.inner.values()), default=0)


def flame_graph(title: str, stacks_ms: Mapping[Stack, float]) -> str:
    """The SVG for stacks, given with the time at which each was seen."""
    root = _Box("all stream threads", "thread")
    for stack, ms in stacks_ms.items():
        box = root
        box.ms += ms
        for label, kind in _labels(stack):
            box = box.inner.setdefault(label, _Box(label, kind))
            box.ms += ms
    height = _HEADER + root.depth() * _ROW + _MARGIN
    boxes = "".join(_drawn(root, _MARGIN, _HEADER, (_WIDTH - 2 * _MARGIN) / (root.ms or 1.0), root.ms or 1.0))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="pystreams-profile" width="{_WIDTH:.0f}"'
        f' height="{height:.0f}" viewBox="0 0 {_WIDTH:.0f} {height:.0f}" style="max-width: 100%; height: auto"'
        f' role="img"><title>{escape(title)}</title><style>{_style()}</style>'
        f'<rect class="page" x="0.5" y="0.5" width="{_WIDTH - 1:.0f}" height="{height - 1:.0f}" rx="8"/>'
        f'<text class="title" x="{_MARGIN}" y="22">{escape(title)}</text>{_legend()}{boxes}</svg>\n'
    )


def _labels(stack: Stack) -> Iterator[tuple[str, str]]:
    """The labels of a stack in the graph: the activity of the thread, then the steps with the functions that they call;
    or the functions of pystreams, where no step is at work."""
    if last_owned(stack) is None:
        yield _activity(stack), "thread"
        inner = [place for place in stack if not _is_frame_of_thread(place)]
    else:
        first = next(n for n, place in enumerate(stack) if place.owner is not None and place.owner.step)
        # A commit flushes caches, and what they hold goes through the steps behind them.
        before = _activity(stack[:first])
        yield "process" if before == str(WorkKind.OTHER) else before, "thread"
        inner = list(stack[first:])
    previous = None
    for place in inner:
        label = _label(place)
        if label != previous:
            yield label
        previous = label


def _activity(stack: Stack) -> str:
    """The activity of the thread; the parts of a commit are together."""
    return work_of(stack).part.partition(":")[0]


def _label(place: StackFrame) -> tuple[str, str]:
    if place.owner is not None:
        return place.owner.step or place.code.co_name, "step"
    file = file_of(place.code)
    kind = _KINDS.get(file.partition("/")[0], "engine") if file else "function"
    return place.code.co_qualname, kind


def _is_frame_of_thread(place: StackFrame) -> bool:
    """Whether it is one of the functions with which each stack of a stream thread begins."""
    file = file_of(place.code)
    return file.startswith("runtime/threads/") if file else place.code.co_filename.endswith("threading.py")


def _drawn(box: _Box, left: float, top: float, px_per_ms: float, total_ms: float) -> Iterator[str]:
    width = box.ms * px_per_ms
    if width < _BOX_MIN:
        return
    title = f"{box.label}: {box.ms / 1000:.2f} s, {box.ms / total_ms:.1%}"
    letters = int((width - 6) / _LETTER)
    text = box.label if len(box.label) <= letters else f"{box.label[: letters - 1]}…" if letters > 3 else ""
    written = f'<text x="{left + 3:.1f}" y="{top + 13:.1f}">{escape(text)}</text>' if text else ""
    yield (
        f'<g><title>{escape(title)}</title><rect class="{box.kind}" x="{left:.2f}" y="{top:.1f}"'
        f' width="{max(width - 0.5, 0.3):.2f}" height="{_ROW - 1:.1f}" rx="2"/>{written}</g>'
    )
    for inner in sorted(box.inner.values(), key=lambda inner: -inner.ms):
        yield from _drawn(inner, left, top + _ROW, px_per_ms, total_ms)
        left += inner.ms * px_per_ms


def _legend() -> str:
    parts: list[str] = []
    left = _MARGIN
    for kind, text in _LEGEND:
        parts.append(
            f'<rect class="{kind}" x="{left:.1f}" y="34" width="11" height="11" rx="2"/>'
            f'<text x="{left + 16:.1f}" y="43">{text}</text>'
        )
        left += 16 + len(text) * _LETTER + 18
    return "".join(parts)


def _style() -> str:
    """The style sheet. Its rules apply to this picture only, also when the picture is part of a page."""
    scope = ".pystreams-profile"
    light = "".join(f"{scope} {what} {{{how}}}" for what, how, _ in _LOOKS)
    dark = "".join(f"{scope} {what} {{{how}}}" for what, _, how in _LOOKS)
    forms = "".join(f"{scope} {what} {{{how}}}" for what, how in _FORMS)
    return f"{forms}{light}@media (prefers-color-scheme: dark) {{{dark}}}"
