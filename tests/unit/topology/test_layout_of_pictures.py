"""The layout of a picture: nothing overlaps, every line leads down, and none goes through what is not its end."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystreams.topology.picture.layout import Size, layered


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 12))
    names = [f"n{i}" for i in range(count)]
    sizes = {n: Size(draw(st.integers(10, 200)), draw(st.integers(10, 90))) for n in names}
    pairs = [(names[i], names[j]) for i in range(count) for j in range(i + 1, count)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=20, unique=True)) if pairs else []
    return sizes, edges


def left_of(center, size):
    return center.x - size.width / 2


def top_of(center, size):
    return center.y - size.height / 2


@given(graphs())
def test_no_two_nodes_overlap_and_all_are_on_the_page(graph):
    sizes, edges = graph
    layout = layered(sizes, edges)
    boxes = {n: (left_of(c, sizes[n]), top_of(c, sizes[n]), *sizes[n]) for n, c in layout.centers.items()}
    assert boxes.keys() == sizes.keys()
    for (x1, y1, w1, h1), (x2, y2, w2, h2) in combinations(boxes.values(), 2):
        assert x1 + w1 <= x2 or x2 + w2 <= x1 or y1 + h1 <= y2 or y2 + h2 <= y1
    for x, y, width, height in boxes.values():
        assert x >= -0.01
        assert y >= 0
        assert x + width <= layout.size.width + 0.01
        assert y + height <= layout.size.height + 0.01


@given(graphs())
def test_lines_lead_down_and_pass_beside_the_nodes_of_the_layers_between(graph):
    sizes, edges = graph
    layout = layered(sizes, edges)
    assert layout.routes.keys() == set(edges)
    for (above, below), route in layout.routes.items():
        heights = [layout.centers[above].y, *(p.y for p in route), layout.centers[below].y]
        assert heights == sorted(heights)
        for one, other in pairwise(route):
            if one.x != other.x:
                continue
            for name, center in layout.centers.items():
                inside = one.y <= center.y <= other.y and abs(center.x - one.x) < sizes[name].width / 2
                assert not inside or name in {above, below}


def test_what_is_to_be_at_the_end_is_in_the_last_row():
    sizes = dict.fromkeys("abcd", Size(10, 10))
    centers = layered(sizes, [("a", "b"), ("b", "c"), ("a", "d")], at_the_end=["d"]).centers
    assert centers["d"].y == centers["c"].y > centers["b"].y


def test_what_nothing_leads_to_stands_above_what_it_leads_to():
    sizes = dict.fromkeys("abcd", Size(10, 10))
    centers = layered(sizes, [("a", "b"), ("b", "c"), ("d", "c")]).centers
    assert centers["d"].y == centers["b"].y


def test_lines_do_not_cross_without_need():
    sizes = dict.fromkeys("abxy", Size(10, 10))
    centers = layered(sizes, [("a", "y"), ("b", "x")]).centers
    assert (centers["a"].x < centers["b"].x) == (centers["y"].x < centers["x"].x)


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle"):
        layered(dict.fromkeys("ab", Size(1, 1)), [("a", "b"), ("b", "a")])
