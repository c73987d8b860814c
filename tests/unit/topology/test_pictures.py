"""The picture of a topology shows all of it, nothing lies over anything else, and it needs nothing from elsewhere."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import pytest

from pystreams import App, JoinWindows
from pystreams.topology.picture import picture
from tests.conformance import golden
from tests.conformance.builder import ScenarioBuilder

_NAME = "{http://www.w3.org/2000/svg}"


class Drawn(NamedTuple):
    kind: str
    text: str
    left: float
    top: float
    width: float
    height: float

    def overlaps(self, other: Drawn) -> bool:
        return not (
            self.left + self.width <= other.left
            or other.left + other.width <= self.left
            or self.top + self.height <= other.top
            or other.top + other.height <= self.top
        )

    def holds(self, other: Drawn) -> bool:
        return (
            self.left <= other.left
            and self.top <= other.top
            and other.left + other.width <= self.left + self.width
            and other.top + other.height <= self.top + self.height
        )


def drawn(svg: str) -> list[Drawn]:
    found = []
    for group in ET.fromstring(svg).iter(f"{_NAME}g"):
        text = "".join(one.text or "" for one in group.iter(f"{_NAME}text"))
        found.append(Drawn(group.attrib["class"], text, *map(float, group.attrib["data-box"].split())))
    return found


def shop() -> App:
    app = App("shop")
    prices = app.global_table("catalog", key=str, value=str, name="prices")
    orders = app.stream("orders", key=str, value=str)
    priced = orders.join(prices, lambda order, price: order + price, key_fn=lambda order: order)
    paid = priced.join(
        app.stream("payments", key=str, value=str), lambda a, b: a + b, windows=JoinWindows.of(10)
    )
    counts = paid.group_by(lambda value: value, key=str).count(
        name="counts-per-customer-and-product-of-the-shop"
    )
    counts.to_stream().to("counts")
    paid.to(lambda key, value: "chosen")
    priced.to("orders")
    return app


def check(svg: str) -> list[Drawn]:
    everything = drawn(svg)
    frames = [one for one in everything if one.kind == "frame"]
    shapes = [one for one in everything if one.kind != "frame"]
    for one, other in combinations(shapes, 2):
        assert not one.overlaps(other), (one, other)
    for one, other in combinations(frames, 2):
        assert not one.overlaps(other), (one, other)
    for one in shapes:
        around = [frame for frame in frames if frame.overlaps(one)]
        assert all(frame.holds(one) for frame in around)
        assert len(around) <= 1
        assert around or not one.kind.startswith("step")
    root = ET.fromstring(svg)
    page = Drawn("page", "", 0, 0, float(root.attrib["width"]), float(root.attrib["height"]))
    assert all(page.holds(one) for one in everything)
    return everything


def test_steps_stores_and_topics_are_there_once():
    everything = check(shop()._repr_svg_() or "")
    texts = [(one.kind, one.text) for one in everything]
    assert len(texts) == len(set(texts)) + 1
    assert texts.count(("topic", "orders")) == 2, "read above the box, written below it"
    for kind, text in [
        ("frame", "Sub-topology 0"),
        ("frame", "Sub-topology 1"),
        ("topic", "catalog"),
        ("topic", "payments"),
        ("topic elsewhere", "chosen by record"),
        ("store", "prices (global)"),
        ("store elsewhere", "prices (global)"),
        ("store", "counts-per-customer-and-product-of-the-shop"),
        ("topic", "counts-per-customer-and-product-of-the-shop-repartition"),
        ("step", "KSTREAM-MERGE-0000000009"),
    ]:
        assert (kind, text) in texts


def buildable() -> list[golden.Case]:
    phases = ("config", "build")
    return [case for case in golden.cases() if (case.result.get("error") or {}).get("phase") not in phases]


@pytest.mark.parametrize("case", buildable(), ids=lambda case: case.name)
def test_nothing_overlaps_in_any_topology(case: golden.Case):
    built: Any = ScenarioBuilder(case.scenario["config"]).build(case.scenario["steps"])
    assert check(built.picture())


def test_it_comes_with_all_that_it_needs():
    svg = shop()._repr_svg_() or ""
    assert not re.search(
        r"<script|https?://(?!www\.w3\.org/2000/svg)|@import|url\(|<image|<foreignObject", svg
    )


def test_a_page_finds_the_shapes_by_name_and_brings_its_own_style():
    app = shop()
    built = app.build().build("shop")
    groups = [sub.nodes for sub in built.subtopologies]
    svg = picture("shop", groups, styled=False)
    assert "style" not in svg
    named = [
        (g.attrib["class"].split()[0], g.attrib["data-name"]) for g in ET.fromstring(svg).iter(f"{_NAME}g")
    ]
    for kind, name in [
        ("frame", "0"),
        ("frame", "1"),
        ("topic", "orders"),
        ("store", "counts-per-customer-and-product-of-the-shop"),
        ("step", "KSTREAM-MERGE-0000000009"),
    ]:
        assert (kind, name) in named


def test_light_and_dark_give_every_shape_a_colour():
    style = re.search(r"<style>(.*)</style>", shop()._repr_svg_() or "")
    assert style is not None
    light, dark = style[1].split("@media (prefers-color-scheme: dark)")
    for what in (".page", ".sub", ".step .shape", ".topic .shape", ".store .shape", ".edge", "text"):
        colours = [re.search(rf"\.pystreams {re.escape(what)} {{[^}}]*#(\w+)", one) for one in (light, dark)]
        assert all(colours)
        assert len({found[1] for found in colours if found}) == 2


def test_names_cannot_break_out_of_the_picture():
    app = App("a")
    app.stream(re.compile("<b>&t.*")).to("out")
    assert ("topic", "/<b>&t.*/") in [(one.kind, one.text) for one in check(app._repr_svg_() or "")]


def test_looking_changes_nothing():
    app = App("a", topology_optimization="all")
    one, two = app.stream("t", key=str, value=str), app.stream("t", key=str, value=str)
    one.group_by(lambda value: value).count(name="n")
    app._repr_svg_()
    two.to("copy")
    unseen = App("a", topology_optimization="all")
    one, two = unseen.stream("t", key=str, value=str), unseen.stream("t", key=str, value=str)
    one.group_by(lambda value: value).count(name="n")
    two.to("copy")
    assert app.build().describe() == unseen.build().describe()


def test_what_cannot_be_built_is_shown_as_text():
    app = App("a")
    app.table("one", name="rows")
    app.table("two", name="rows")
    assert app._repr_svg_() is None


def test_an_empty_one_is_a_page():
    assert drawn(App("a")._repr_svg_() or "") == []
