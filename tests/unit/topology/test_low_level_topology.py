"""Topologies written by hand: sources, processors, sinks, stores."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pystreams import Processor, Topology, TopologyError
from pystreams.serde import INT, STR
from pystreams.state.spec import StoreSpec
from pystreams.topology.nodes import ProcessorNode


class Idle(Processor[Any, Any, Any, Any]):
    """Does nothing."""


def store(name: str) -> StoreSpec:
    return StoreSpec(name, "key_value", STR, INT)


def counting() -> Topology:
    topology = Topology()
    topology.add_source("in", "lines", value=str)
    topology.add_processor("count", Idle, "in", stores=[store("counts")])
    topology.add_sink("out", "word-counts", "count", key=str, value=int)
    return topology


def with_global(topology: Topology) -> Topology:
    return topology.add_global_store(store("everywhere"), "all", "everywhere", "fill", Idle)


def test_a_topology_is_described_as_java_does():
    assert counting().describe() == (
        "Topologies:\n"
        "   Sub-topology: 0\n"
        "    Source: in (topics: [lines])\n"
        "      --> count\n"
        "    Processor: count (stores: [counts])\n"
        "      --> out\n"
        "      <-- in\n"
        "    Sink: out (topic: word-counts)\n"
        "      <-- count\n"
        "\n"
    )


def test_an_empty_topology_has_a_description_too():
    assert Topology().describe() == "Topologies:\n "


def test_steps_that_share_a_store_are_one_sub_topology():
    topology = Topology()
    topology.add_source("a", "a").add_source("b", "b").add_source("c", "c")
    topology.add_processor("pa", Idle, "a").add_processor("pb", Idle, "b").add_processor("pc", Idle, "c")
    topology.add_state_store(store("s"), "pa", "pc")
    groups = [[node.name for node in group] for group in topology.node_groups()]
    assert groups == [["a", "c", "pa", "pc"], ["b", "pb"]]


def test_a_store_may_be_connected_later_and_twice():
    topology = (
        counting()
        .add_processor("look", Idle, "in")
        .connect_processor_and_state_stores("look", "counts", "counts")
    )
    look = topology.nodes["look"]
    assert isinstance(look, ProcessorNode)
    assert look.stores == ["counts"]


def test_the_very_same_store_can_be_added_again():
    shared = store("s")
    topology = counting()
    topology.add_processor("one", Idle, "in", stores=[shared])
    topology.add_processor("two", Idle, "in", stores=[shared])
    assert set(topology.stores) == {"counts", "s"}


@pytest.mark.parametrize(
    "mistake, said",
    [
        (lambda t: t.add_source("in", "other"), "step in has already been added"),
        (lambda t: t.add_source("in2", "lines"), "topic lines is already read by source in"),
        (lambda t: t.add_source("in2", []), "source in2 has no topics"),
        (lambda t: t.add_source("in2", re.compile("l.*")), "pattern l.* matches topic lines"),
        (lambda t: t.add_processor("p", Idle), "step p has no parents"),
        (lambda t: t.add_processor("p", Idle, "nowhere"), "parent nowhere of step p has not been added"),
        (lambda t: t.add_processor("p", Idle, "out"), "sink out cannot be the parent of step p"),
        (lambda t: t.add_processor("p", Idle, "in", stores=["none"]), "store none has not been added"),
        (lambda t: t.add_state_store(store("counts")), "a different store has already been added"),
        (
            lambda t: t.connect_processor_and_state_stores("nobody", "counts"),
            "processor nobody has not been added",
        ),
        (
            lambda t: t.connect_processor_and_state_stores("out", "counts"),
            "store counts cannot be connected to out",
        ),
        (lambda t: t.add_sink("s", lambda a, b, c, d: "x", "in"), "takes 4 arguments"),
        (lambda t: t.add_source("", "other"), "a step cannot be called ''"),
        (lambda t: t.add_source(None, "other"), "a step cannot be called None"),
        (lambda t: t.add_source("in2", ["a", "b", "a"]), "source in2 names topic a twice"),
        (lambda t: t.add_processor("p", Idle, ["in"]), "step p got ['in'] for a parent"),
        (
            lambda t: t.connect_processor_and_state_stores("count"),
            "count cannot be connected to stores, because none is named",
        ),
        (lambda t: with_global(t).add_processor("p", Idle, "fill"), "step p cannot follow fill"),
        (
            lambda t: with_global(t).add_state_store(store("s"), "fill"),
            "fill fills a global store, and cannot use",
        ),
    ],
)
def test_a_mistake_is_an_error_that_names_it(mistake, said):
    with pytest.raises(TopologyError, match=re.escape(said)):
        mistake(counting())


def test_a_topic_that_a_pattern_finds_cannot_be_read_by_name():
    topology = Topology().add_source("all", re.compile("orders-.*"))
    with pytest.raises(TopologyError, match="matches the pattern"):
        topology.add_source("one", "orders-eu")


def test_a_sink_may_choose_its_topic():
    def by_length(value: str) -> str:
        return f"length-{len(value)}"

    topology = Topology().add_source("in", "lines").add_sink("out", by_length, "in", key=str, value=str)
    assert "Sink: out (extractor class: by_length)" in topology.describe()
