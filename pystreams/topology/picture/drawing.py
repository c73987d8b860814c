"""Draws a box for each sub-topology with its steps and stores, the topics between them, and the global stores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pystreams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode
from pystreams.topology.picture.layout import Edge, Layout, Point, Size, layered
from pystreams.topology.picture.shapes import edge, frame, lines_of, page, shape, size_of

_MARGIN: Final = 20.0
_PADDING: Final = 18.0
_HEADER: Final = 34.0


def picture(
    title: str,
    groups: Sequence[Sequence[Node]],
    global_groups: Sequence[Sequence[Node]] = (),
    *,
    styled: bool = True,
) -> str:
    """The SVG of sub-topologies, given by their nodes, and of the nodes that fill global stores. Without ``styled`` it
    has no style sheet, for pages that have one."""
    drawing = _Drawing()
    for nodes in global_groups:
        drawing.add_global(nodes)
    for number, nodes in enumerate(groups):
        drawing.add(number, nodes)
    return drawing.svg(title, styled=styled)


@dataclass(eq=False)
class _Part:
    """A shape, or the box of a sub-topology with the shapes in it. ``name`` is that of the step, store or topic, or the
    number of the sub-topology."""

    kind: str
    name: str
    lines: list[str]
    size: Size
    elsewhere: bool = False
    inner: Layout | None = None
    parts: dict[str, _Part] = field(default_factory=dict)
    #: The lines to stores, which have no arrows.
    uses: set[Edge] = field(default_factory=set)

    @classmethod
    def of(cls, kind: str, name: str, text: str = "", *, elsewhere: bool = False) -> _Part:
        lines = lines_of(text or name)
        return cls(kind, name, lines, size_of(lines, kind=kind), elsewhere)

    def inside(self, name: str, center: Point) -> Point:
        """The center of a shape in this box, if the box has its center at ``center``."""
        assert self.inner is not None
        left, top = _corner(center, self.size)
        return Point(left + _PADDING + self.inner.centers[name].x, top + _HEADER + self.inner.centers[name].y)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line from a topic to a source, or from a sink to a topic. An end in a box also has the name of the step."""

    edge: Edge
    sink: str | None = None
    source: str | None = None


class _Drawing:
    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}
        self._lines: list[_Line] = []
        #: Sinks, which are drawn after all sources are known: no line may lead upwards.
        self._writes: list[tuple[str, SinkNode]] = []

    def add_global(self, nodes: Sequence[Node]) -> None:
        """Add a global store and the topic that fills it."""
        source, processor = nodes
        assert isinstance(source, SourceNode)
        assert isinstance(processor, ProcessorNode)
        (store,) = processor.stores
        self._parts[f"global {store}"] = _Part.of("store", store, f"{store} (global)")
        self._lines.append(_Line((self._topic(source.topics[0]), f"global {store}")))

    def add(self, number: int, nodes: Sequence[Node]) -> None:
        """Add a sub-topology with the topics that it reads and writes."""
        name = f"sub {number}"
        self._parts[name] = _box(number, nodes)
        for node in nodes:
            if isinstance(node, SourceNode):
                topics = node.topics if node.pattern is None else (f"/{node.pattern.pattern}/",)
                self._lines += [_Line((self._topic(topic), name), source=node.name) for topic in topics]
            elif isinstance(node, SinkNode):
                self._writes.append((name, node))

    def svg(self, title: str, *, styled: bool) -> str:
        """Lay out all shapes and return the SVG."""
        for sub, sink in self._writes:
            self._lines.append(_Line((sub, self._written(sub, sink)), sink=sink.name))
        sizes = {name: part.size for name, part in self._parts.items()}
        layout = layered(sizes, [line.edge for line in self._lines])
        centers = {name: Point(c.x + _MARGIN, c.y + _MARGIN) for name, c in layout.centers.items()}
        frames, shapes = [], []
        edges = [edge(self._points(line, centers, layout)) for line in self._lines]
        for name, part in self._parts.items():
            if part.inner is None:
                shapes.append(
                    shape(
                        part.kind, part.name, part.lines, centers[name], part.size, elsewhere=part.elsewhere
                    )
                )
            else:
                corner = _corner(centers[name], part.size)
                frames.append(frame(part.kind, part.name, part.lines[0], corner, part.size))
                edges += _inner_edges(part, centers[name])
                shapes += [
                    shape(
                        one.kind,
                        one.name,
                        one.lines,
                        part.inside(within, centers[name]),
                        one.size,
                        elsewhere=one.elsewhere,
                    )
                    for within, one in part.parts.items()
                ]
        size = Size(layout.size.width + 2 * _MARGIN, layout.size.height + 2 * _MARGIN)
        return page([*frames, *edges, *shapes], size, title, styled=styled)

    def _topic(self, name: str) -> str:
        id = f"topic {name}"
        self._parts.setdefault(id, _Part.of("topic", name))
        return id

    def _written(self, sub: str, sink: SinkNode) -> str:
        """The topic of a sink, drawn a second time if the sub-topology comes after it."""
        if sink.topic is None:
            id = f"chosen by {sink.name}"
            self._parts[id] = _Part.of("topic", "", "chosen by record", elsewhere=True)
            return id
        topic = self._topic(sink.topic)
        if not self._reaches(topic, sub):
            return topic
        id = f"{topic} again"
        self._parts.setdefault(id, _Part.of("topic", sink.topic))
        return id

    def _reaches(self, start: str, end: str) -> bool:
        todo, seen = [start], {start}
        while todo:
            here = todo.pop()
            if here == end:
                return True
            further = {line.edge[1] for line in self._lines if line.edge[0] == here} - seen
            seen |= further
            todo += further
        return False

    def _points(self, line: _Line, centers: dict[str, Point], layout: Layout) -> list[Point]:
        above, below = (self._parts[name] for name in line.edge)
        start, end = (centers[name] for name in line.edge)
        start_height, end_height = above.size.height, below.size.height
        if line.sink is not None:
            start, start_height = above.inside(line.sink, start), above.parts[line.sink].size.height
        if line.source is not None:
            end, end_height = below.inside(line.source, end), below.parts[line.source].size.height
        first, *lanes, last = (Point(p.x + _MARGIN, p.y + _MARGIN) for p in layout.routes[line.edge])
        return [
            Point(start.x, start.y + start_height / 2),
            Point(start.x, first.y),
            *lanes,
            Point(end.x, last.y),
            Point(end.x, end.y - end_height / 2),
        ]


def _box(number: int, nodes: Sequence[Node]) -> _Part:
    """The box of a sub-topology. Sinks are in its last row, where lines leave the box."""
    title = f"Sub-topology {number}"
    part = _Part("sub", str(number), [title], Size(0, 0))
    edges: list[Edge] = []
    for node in nodes:
        part.parts[node.name] = _Part.of("step", node.name)
        if isinstance(node, SourceNode):
            continue
        edges += [(parent, node.name) for parent in node.parents]
        if isinstance(node, ProcessorNode):
            table = node.operation.global_table
            for store in [*node.stores, *([] if table is None else [table])]:
                text = f"{store} (global)" if store == table else store
                shown = _Part.of("store", store, text, elsewhere=store == table)
                part.parts.setdefault(f"store {store}", shown)
                part.uses.add((node.name, f"store {store}"))
    sinks = [node.name for node in nodes if isinstance(node, SinkNode)]
    sizes = {name: one.size for name, one in part.parts.items()}
    part.inner = layered(sizes, [*edges, *sorted(part.uses)], at_the_end=sinks)
    width, height = part.inner.size
    title_width = size_of([title], kind="step").width
    part.size = Size(max(width, title_width) + 2 * _PADDING, height + _HEADER + _PADDING)
    return part


def _inner_edges(part: _Part, center: Point) -> list[str]:
    assert part.inner is not None
    left, top = _corner(center, part.size)
    drawn = []
    for (above, below), route in part.inner.routes.items():
        start, end = part.inside(above, center), part.inside(below, center)
        points = [
            Point(start.x, start.y + part.parts[above].size.height / 2),
            *(Point(left + _PADDING + p.x, top + _HEADER + p.y) for p in route),
            Point(end.x, end.y - part.parts[below].size.height / 2),
        ]
        drawn.append(edge(points, uses=(above, below) in part.uses))
    return drawn


def _corner(center: Point, size: Size) -> Point:
    return Point(center.x - size.width / 2, center.y - size.height / 2)
