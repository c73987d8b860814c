"""Compiled code does what an interpreter does that walks the graph record by record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pystreams.dsl.operators import stateless as ops
from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.topology.nodes import Node, Operation, ProcessorNode, SinkNode, SourceNode
from tests.unit.engine.task_kit import Harness, fn, sink, source, step

Forward = Callable[[Any, Any], None]


def moody(function: Callable[..., Any], letter: str) -> Callable[..., Any]:
    """Raises for values that hold ``letter``."""

    def call(key: Any, value: Any) -> Any:
        if letter in value:
            raise ValueError(value)
        return function(key, value)

    return call


class Twice(ObjectOperation):
    """Forwards every record twice."""

    def open(self, environment: OperatorEnvironment) -> Operator:
        forward = environment.forward

        def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
            forward(key, value + "1", timestamp, headers)
            forward(key, value + "2", timestamp, headers)

        return Operator(process)


def forward_all(key: Any, value: Any, forward: Forward, op: Any) -> None:
    """What one step means, for every kind of operation."""
    match op:
        case Twice():
            forward(key, value + "1")
            forward(key, value + "2")
        case ops.NotNullKey():
            if key is not None:
                forward(key, value)
        case ops.Filter():
            if op.predicate.call(key, value) != op.negate:
                forward(key, value)
        case ops.Map():
            forward(*op.mapper.call(key, value))
        case ops.MapValues():
            forward(key, op.mapper.call(key, value))
        case ops.SelectKey():
            forward(op.mapper.call(key, value), value)
        case ops.FlatMap():
            for new_key, new_value in op.mapper.call(key, value):
                forward(new_key, new_value)
        case ops.FlatMapValues():
            for new_value in op.mapper.call(key, value):
                forward(key, new_value)
        case ops.Peek():
            op.action.call(key, value)
            forward(key, value)
        case _:
            forward(key, value)


def interpret(nodes: list[Node], key: Any, value: Any) -> list[tuple[str, Any, Any]]:
    """(topic, key, value) of everything that comes out, in order. A step that raises ends its own branch."""
    written: list[tuple[str, Any, Any]] = []

    def visit(node: Node, key: Any, value: Any) -> None:
        children = [n for n in nodes if not isinstance(n, SourceNode) and node.name in n.parents]

        def forward(key: Any, value: Any) -> None:
            for child in children:
                visit(child, key, value)

        if isinstance(node, SinkNode):
            written.append((node.topic or "", key, value))
        elif isinstance(node, SourceNode):
            forward(key, value)
        else:
            try:
                forward_all(key, value, forward, node.operation)
            except ValueError:
                return

    visit(nodes[0], key, value)
    return written


def letters(key: Any, value: str) -> list[str]:
    return [c + value for c in value[:2]]


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    letter = draw(st.sampled_from("abcdx"))
    return draw(
        st.sampled_from(
            [
                ops.Forward(),
                Twice(),
                ops.NotNullKey(),
                ops.Filter(fn(moody(lambda key, value: letter not in str(key), "d")), negate=letter < "c"),
                ops.Map(fn(moody(lambda key, value: (value[:2], f"{key}"), letter))),
                ops.MapValues(fn(moody(lambda key, value: value + letter, "x"))),
                ops.SelectKey(fn(moody(lambda key, value: None if letter in value else letter, "d"))),
                ops.FlatMap(fn(moody(lambda key, value: [(c, value) for c in letters(key, value)], letter))),
                ops.FlatMapValues(fn(moody(lambda key, value: iter(letters(key, value)), letter))),
                ops.FlatMapValues(fn(moody(letters, letter))),
                ops.Peek(fn(moody(lambda key, value: None, letter))),
            ]
        )
    )


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    nodes: list[Node] = [source()]
    for i in range(draw(st.integers(1, 9))):
        parents = draw(
            st.lists(st.sampled_from([n.name for n in nodes]), min_size=1, max_size=2, unique=True)
        )
        nodes.append(step(f"s{i}", tuple(parents), draw(operations())))
    ends = draw(st.lists(st.sampled_from([n.name for n in nodes]), min_size=1, max_size=4))
    return [*nodes, *(sink(end, f"t{i}", name=f"sink-{i}") for i, end in enumerate(ends))]


@given(
    graphs(),
    st.lists(
        st.tuples(st.none() | st.sampled_from("kd"), st.sampled_from(["a", "bc", "dx", "cab"])), max_size=3
    ),
)
def test_any_graph_of_steps_gives_what_walking_it_gives(
    nodes: list[Node], records: list[tuple[Any, str]]
) -> None:
    harness = Harness(nodes, processing_exception_handler="continue")
    harness.run(*[(key, value, i) for i, (key, value) in enumerate(records)])
    expected = [written for key, value in records for written in interpret(nodes, key, value)]
    decoded = [
        (r.topic, None if r.key is None else r.key.decode(), None if r.value is None else r.value.decode())
        for r in harness.producer.records
    ]
    assert decoded == expected
    assert any(isinstance(node, ProcessorNode) for node in nodes)
