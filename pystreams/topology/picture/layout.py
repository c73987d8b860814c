"""Lays out a directed acyclic graph: nodes in layers from top to bottom, edges routed around the nodes between.

Source: K. Sugiyama, S. Tagawa, M. Toda, Methods for Visual Understanding of Hierarchical System Structures, 1981. The
positions within a layer minimize the squared distances under the constraints of order and gaps, by pooling adjacent
violators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

GAP_X = 28.0
GAP_Y = 44.0
_LANE = 12.0
_SWEEPS = 8


class Point(NamedTuple):
    """Pixels from the left and from the top."""

    x: float
    y: float


class Size(NamedTuple):
    """Pixels."""

    width: float
    height: float


Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """``centers`` of the nodes, and ``routes``: for each edge the points between its ends."""

    centers: Mapping[str, Point]
    routes: Mapping[Edge, Sequence[Point]]
    size: Size


def layered(
    sizes: Mapping[str, Size], edges: Collection[Edge], *, at_the_end: Collection[str] = ()
) -> Layout:
    """Lay out the nodes. Those in ``at_the_end``, which have no outgoing edge, are in the last layer."""
    edges = list(dict.fromkeys(edges))
    layer_of = _layers(list(sizes), edges)
    for name in at_the_end:
        layer_of[name] = max(layer_of.values())
    lanes, pieces = _lanes(edges, layer_of)
    layer_of |= {lane: layer for chain in lanes.values() for layer, lane in chain.items()}
    layers = _ordered(layer_of, pieces)
    widths = {name: sizes[name].width if name in sizes else _LANE for name in layer_of}
    x = _places(layers, pieces, widths)
    shift = min((x[name] - width / 2 for name, width in widths.items()), default=0.0)
    heights = [max((sizes[name].height for name in layer if name in sizes), default=0.0) for layer in layers]
    tops = [sum(heights[:n]) + GAP_Y * n for n in range(len(layers))]
    centers = {
        name: Point(x[name] - shift, tops[n] + heights[n] / 2)
        for name, n in layer_of.items()
        if name in sizes
    }
    routes = {
        (above, below): [
            Point(centers[above].x, tops[layer_of[above]] + heights[layer_of[above]]),
            *(
                Point(x[lane] - shift, y)
                for layer, lane in lanes[above, below].items()
                for y in (tops[layer], tops[layer] + heights[layer])
            ),
            Point(centers[below].x, tops[layer_of[below]]),
        ]
        for above, below in edges
    }
    width = max((x[name] - shift + width / 2 for name, width in widths.items()), default=0.0)
    return Layout(centers, routes, Size(width, tops[-1] + heights[-1] if layers else 0.0))


def _layers(names: Sequence[str], edges: Sequence[Edge]) -> dict[str, int]:
    """The length of the longest path from above. A node without incoming edges stands just above its first child."""
    above: dict[str, list[str]] = {name: [] for name in names}
    below: dict[str, list[str]] = {name: [] for name in names}
    for start, end in edges:
        above[end].append(start)
        below[start].append(end)
    layer: dict[str, int] = {}
    for name in _topological(names, above, below):
        layer[name] = max((layer[parent] + 1 for parent in above[name]), default=0)
    for name in names:
        if not above[name] and below[name]:
            layer[name] = min(layer[child] for child in below[name]) - 1
    return layer


def _topological(
    names: Sequence[str], above: Mapping[str, Sequence[str]], below: Mapping[str, list[str]]
) -> list[str]:
    waiting = {name: len(above[name]) for name in names}
    ready = [name for name in names if not waiting[name]]
    for name in ready:
        for child in below[name]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if len(ready) < len(names):
        raise ValueError("the graph has a cycle")
    return ready


def _lanes(
    edges: Sequence[Edge], layer_of: Mapping[str, int]
) -> tuple[dict[Edge, dict[int, str]], list[Edge]]:
    """For each edge its places in the layers that it crosses; and all edges, cut into pieces from layer to layer."""
    lanes: dict[Edge, dict[int, str]] = {}
    pieces: list[Edge] = []
    for start, end in edges:
        passed = range(layer_of[start] + 1, layer_of[end])
        lanes[start, end] = {layer: f"{start}\0{end}\0{layer}" for layer in passed}
        pieces += pairwise([start, *lanes[start, end].values(), end])
    return lanes, pieces


def _ordered(layer_of: Mapping[str, int], pieces: Sequence[Edge]) -> list[list[str]]:
    """The layers, each in an order with few crossings: every node is near the mean position of its neighbours."""
    layers: list[list[str]] = [[] for _ in range(max(layer_of.values(), default=-1) + 1)]
    for name, number in layer_of.items():
        layers[number].append(name)
    neighbours = _neighbours(layer_of, pieces)
    best, fewest = [list(layer) for layer in layers], _crossings(layers, pieces)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            place = {name: n for one in layers for n, name in enumerate(one)}
            middles = {}
            for name in layer:
                others = neighbours[name][0 if down else 1]
                middles[name] = sum(place[o] for o in others) / len(others) if others else place[name]
            layer.sort(key=middles.__getitem__)
        crossings = _crossings(layers, pieces)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _neighbours(names: Iterable[str], pieces: Sequence[Edge]) -> dict[str, tuple[list[str], list[str]]]:
    """For each node its neighbours in the layer above, and in the layer below."""
    found: dict[str, tuple[list[str], list[str]]] = {name: ([], []) for name in names}
    for start, end in pieces:
        found[start][1].append(end)
        found[end][0].append(start)
    return found


def _crossings(layers: Sequence[Sequence[str]], pieces: Sequence[Edge]) -> int:
    place = {name: (n, i) for n, layer in enumerate(layers) for i, name in enumerate(layer)}
    lines: dict[int, list[tuple[int, int]]] = {}
    for start, end in pieces:
        lines.setdefault(place[start][0], []).append((place[start][1], place[end][1]))
    return sum(
        (a - c) * (b - d) < 0
        for between in lines.values()
        for n, (a, b) in enumerate(between)
        for c, d in between[:n]
    )


def _places(
    layers: Sequence[Sequence[str]], pieces: Sequence[Edge], widths: Mapping[str, float]
) -> dict[str, float]:
    """The center of each node: as near as possible to the mean of its neighbours."""
    neighbours = _neighbours(widths, pieces)
    x: dict[str, float] = {}
    for layer in layers:
        x |= dict(zip(layer, _apart([0.0] * len(layer), layer, widths), strict=True))
    for sweep in range(2 * _SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            wished = []
            for name in layer:
                above, below = neighbours[name]
                others = (above or below) if down else (below or above)
                wished.append(sum(x[o] for o in others) / len(others) if others else x[name])
            x |= dict(zip(layer, _apart(wished, layer, widths), strict=True))
    return x


def _apart(wished: Sequence[float], layer: Sequence[str], widths: Mapping[str, float]) -> list[float]:
    """The positions nearest to the wished ones that keep the order and the gaps."""
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (widths[left] + widths[right]) / 2 + GAP_X)
    pools: list[tuple[float, int]] = []
    for wish, offset in zip(wished, offsets, strict=False):
        mean, count = wish - offset, 1
        while pools and pools[-1][0] >= mean:
            other, size = pools.pop()
            mean, count = (mean * count + other * size) / (count + size), count + size
        pools.append((mean, count))
    settled = [mean for mean, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(settled, offsets, strict=False)]
