"""Compiled code does what each stateless step promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pystreams.dsl.operators import stateless as ops
from tests.unit.engine.task_kit import Harness, fn, sink, source, step

SPLIT = fn(lambda value: value.split())


@pytest.mark.parametrize(
    "operation, expected",
    [
        (ops.Forward(), [("k", "a b", 5)]),
        (ops.Filter(fn(lambda value: value == "a b")), [("k", "a b", 5)]),
        (ops.Filter(fn(lambda key, value: key == "x")), []),
        (ops.Filter(fn(lambda value: value == "a b"), negate=True), []),
        (ops.Map(fn(lambda key, value: (value, key))), [("a b", "k", 5)]),
        (ops.MapValues(fn(str.upper)), [("k", "A B", 5)]),
        (ops.MapValues(fn(lambda key, value: key + value)), [("k", "ka b", 5)]),
        (ops.SelectKey(fn(lambda value: value[0])), [("a", "a b", 5)]),
        (
            ops.FlatMap(fn(lambda key, value: [(w, key) for w in value.split()])),
            [("a", "k", 5), ("b", "k", 5)],
        ),
        (
            ops.FlatMap(fn(lambda value: {w: w for w in value.split()}.items())),
            [("a", "a", 5), ("b", "b", 5)],
        ),
        (ops.FlatMapValues(SPLIT), [("k", "a", 5), ("k", "b", 5)]),
        (ops.FlatMapValues(fn(lambda value: (w for w in value.split()))), [("k", "a", 5), ("k", "b", 5)]),
        (ops.FlatMapValues(fn(lambda value: [])), []),
        (ops.NotNullKey(), [("k", "a b", 5)]),
        (ops.Peek(fn(lambda value: None)), [("k", "a b", 5)]),
    ],
)
def test_a_step_hands_on_what_it_promises(operation: Any, expected: list[Any]) -> None:
    harness = Harness([source(), step("s", "source", operation), sink("s")])
    harness.run(("k", "a b", 5))
    assert harness.written() == expected


def test_null_keys_end_at_the_filter_before_a_repartition_topic() -> None:
    harness = Harness([source(), step("s", "source", ops.NotNullKey()), sink("s")])
    harness.run((None, "a", 1), ("k", "b", 2))
    assert harness.values() == ["b"]


def test_null_keys_and_values_pass_stateless_steps() -> None:
    harness = Harness([source(), step("s", "source", ops.Filter(fn(lambda value: value is None))), sink("s")])
    harness.run((None, None, 1), ("k", "b", 2))
    assert harness.written() == [(None, None, 1)]


def test_a_key_selected_inside_a_loop_is_not_seen_by_the_next_round() -> None:
    harness = Harness(
        [
            source(),
            step("words", "source", ops.FlatMapValues(SPLIT)),
            step("key", "words", ops.SelectKey(fn(lambda key, value: key + value))),
            step("map", "key", ops.Map(fn(lambda key, value: (key, value.upper())))),
            sink("map"),
        ]
    )
    harness.run(("k", "a b", 1))
    assert harness.written() == [("ka", "A", 1), ("kb", "B", 1)]


def test_records_go_depth_first_and_children_in_order() -> None:
    seen: list[str] = []

    def note(name: str) -> Callable[[str], None]:
        return lambda value: seen.append(name + value)

    harness = Harness(
        [
            source(),
            step("p", "source", ops.Peek(fn(note("p")))),
            step("l", "p", ops.Foreach(fn(note("l")))),
            step("r", "p", ops.Foreach(fn(note("r")))),
        ]
    )
    harness.run((None, "1", 1), (None, "2", 2))
    assert seen == ["p1", "l1", "r1", "p2", "l2", "r2"]


def test_a_branch_that_drops_a_record_leaves_its_siblings_alone() -> None:
    nothing, everything = fn(lambda value: False), fn(lambda value: True)
    harness = Harness(
        [
            source(),
            step("loop", "source", ops.FlatMapValues(SPLIT)),
            step("none", "loop", ops.Filter(nothing)),
            step("changed", "loop", ops.Map(fn(lambda key, value: (value, value * 2)))),
            step("all", "loop", ops.Filter(everything)),
            sink("none", name="sink-1"),
            sink("changed", name="sink-2"),
            sink("all", name="sink-3"),
        ]
    )
    harness.run(("k", "a b", 1))
    assert harness.written() == [("a", "aa", 1), ("k", "a", 1), ("b", "bb", 1), ("k", "b", 1)]


def test_a_step_with_several_parents_gets_the_records_of_each() -> None:
    harness = Harness(
        [
            source(),
            step("left", "source", ops.MapValues(fn(lambda value: value + "l"))),
            step("right", "source", ops.MapValues(fn(lambda value: value + "r"))),
            step("merge", ("left", "right"), ops.Forward()),
            step("upper", "merge", ops.MapValues(fn(str.upper))),
            sink("upper"),
        ]
    )
    harness.run(("k", "a", 1), ("k", "b", 2))
    assert harness.values() == ["AL", "AR", "BL", "BR"]


@pytest.mark.parametrize("default, expected", [("other", ["xy:x", "y:y", "z:z"]), (None, ["xy:x", "y:y"])])
def test_a_split_gives_each_record_to_the_first_branch_that_wants_it(
    default: str | None, expected: list[str]
) -> None:
    branch = ops.Branch(
        (fn(lambda value: "x" in value), fn(lambda key, value: "y" in value)), ("xs", "ys"), default
    )
    nodes = [
        source(),
        step("split", "source", branch),
        step("xs", "split", ops.Forward()),
        step("ys", "split", ops.Forward()),
        step("x", "xs", ops.MapValues(fn(lambda value: value + ":x"))),
        step("y", "ys", ops.MapValues(fn(lambda value: value + ":y"))),
        sink(("x", "y"), name="s"),
    ]
    if default:
        nodes += [
            step("other", "split", ops.Forward()),
            step("z", "other", ops.MapValues(fn(lambda value: value + ":z"))),
            sink("z", name="t"),
        ]
    harness = Harness(nodes)
    harness.run(*[("k", v, 1) for v in ("xy", "y", "z")])
    assert harness.values() == expected


def test_print_writes_label_key_and_value(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    path = tmp_path / "printed.txt"
    harness = Harness(
        [
            source(),
            step("p", "source", ops.Print("screen")),
            step("f", "source", ops.Print("file", str(path))),
        ]
    )
    harness.run(("k", "a", 1))
    harness.task.close()
    assert capsys.readouterr().out == "[screen]: k, a\n"
    assert path.read_text() == "[file]: k, a\n"


def test_any_number_of_nested_flat_maps_can_be_compiled() -> None:
    nodes: list[Any] = [source()]
    for i in range(30):
        nodes.append(step(f"loop-{i}", nodes[-1].name, ops.FlatMapValues(fn(lambda value: [value + "."]))))
        nodes.append(
            step(f"key-{i}", nodes[-1].name, ops.SelectKey(fn(lambda key, value: f"{key}{len(value)}")))
        )
    harness = Harness([*nodes, sink(nodes[-1].name)])
    harness.run(("k", "", 1), ("k", "", 2))
    key = "k" + "".join(str(n) for n in range(1, 31))
    assert harness.written() == [(key, "." * 30, 1), (key, "." * 30, 2)]


def test_a_chain_of_hundreds_of_steps_can_be_compiled() -> None:
    nodes: list[Any] = [source()]
    for i in range(300):
        nodes.append(step(f"s{i}", nodes[-1].name, ops.MapValues(fn(lambda value: str(int(value) + 1)))))
    harness = Harness([*nodes, sink(nodes[-1].name)])
    harness.run(("k", "0", 1))
    assert harness.values() == ["300"]


def test_steps_may_be_called_like_python_words_and_like_each_other() -> None:
    names = [
        "class",
        "value",
        "KEY",
        "key",
        "print",
        "send",
        "cell",
        "1",
        "a-b",
        "a.b",
        "run_a_b",
        "value_2",
        "é",
    ]
    nodes: list[Any] = [source(name="for")]
    for name in names:
        nodes.append(step(name, nodes[-1].name, ops.MapValues(fn(lambda value: value + "."))))
    harness = Harness([*nodes, sink(nodes[-1].name, name="read_for")])
    harness.run(("k", "", 1))
    assert harness.values() == ["." * len(names)]
