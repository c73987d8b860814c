"""The plan: slices in an order that can be computed, refusals by name, and what a reader should know."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import App, Stores
from pystreams.backfill.application import loaded
from pystreams.backfill.plan.notes import notes
from pystreams.backfill.plan.slices import BackfillPlan, make_plan
from pystreams.errors import TopicError, TopologyError
from pystreams.processor import Processor
from pystreams.topology.topology import Topology


def plan(program: Any, counts: dict[str, int], **settings: Any) -> BackfillPlan:
    return make_plan(loaded(program, settings).built, counts)


def shape(found: BackfillPlan) -> list[tuple[int, list[str]]]:
    """Sub-topology and inputs of each slice."""
    return [(one.subtopology, [input.topic for input in one.inputs]) for one in found.slices]


def word_count() -> App:
    app = App("wc")
    words = app.stream("lines", value=str).flat_map_values(str.split).group_by(lambda word: word)
    words.count(name="counts").to_stream().to("word-counts")
    return app


def test_a_repartition_topic_cuts_the_application_in_two_slices():
    found = plan(word_count(), {"lines": 3, "word-counts": 5})
    first, second = found.slices
    assert shape(found) == [(0, ["lines"]), (1, ["wc-counts-repartition"])]
    assert (first.tasks, first.repartitions, dict(first.stores)) == (3, ("wc-counts-repartition",), {})
    assert [(i.internal, i.upstream, i.partitions) for i in second.inputs] == [(True, (0,), 3)]
    assert (second.sinks, dict(second.stores)) == (("word-counts",), {"counts": "wc-counts-changelog"})
    assert found.partitions["word-counts"] == 5


def test_an_unknown_sink_topic_is_as_wide_as_what_writes_it():
    assert plan(word_count(), {"lines": 3}).partitions["word-counts"] == 3


def test_an_input_that_does_not_exist_is_named():
    with pytest.raises(TopicError, match="lines"):
        plan(word_count(), {})


def test_a_topic_that_is_written_and_read_is_refused_by_name():
    app = App("twice")
    app.stream("in", key=str, value=str).to("between")
    app.stream("between", key=str, value=str).to("out")
    with pytest.raises(TopologyError, match="writes topic between and reads it"):
        plan(app, {"in": 1, "between": 1, "out": 1})


def self_joined() -> App:
    """The stream is joined with what is aggregated from itself under another key: one sub-topology, read twice."""
    app = App("self")
    numbers = app.stream("numbers", key=str, value=int)
    totals = numbers.group_by(lambda value: str(value % 3), key=str, value=int).count(name="totals")
    numbers.join(totals, lambda number, total: number + total).to("out", key=str, value=int)
    return app


def test_a_subtopology_that_feeds_itself_through_an_internal_topic_is_visited_twice():
    found = plan(self_joined(), {"numbers": 2, "out": 2})
    assert shape(found) == [(0, ["numbers"]), (0, ["self-totals-repartition"])]
    first, second = found.slices
    assert (first.carried_from, first.final) == (None, False)
    assert (second.carried_from, second.final) == (0, True)
    texts = [str(note) for note in notes(found, loaded(self_joined(), {}))]
    assert any("processed after all of numbers" in text for text in texts)


class Idle(Processor[Any, Any, Any, Any]):
    """Does nothing."""

    def process(self, record: Any) -> None:
        self.context.forward(record)


def test_a_topic_that_feeds_itself_is_refused_by_name():
    topology = Topology()
    topology.add_internal_topic("loop", 1)
    topology.add_source("in", "in", key=str, value=str)
    topology.add_source("again", "loop", key=str, value=str)
    topology.add_processor("step", Idle, "in", "again")
    topology.add_sink("back", "loop", "step", key=str, value=str)
    with pytest.raises(TopologyError, match="topic loops-loop feeds itself"):
        plan(topology, {"in": 1}, application_id="loops")


def test_order_dependent_steps_and_what_is_left_out_are_noted():
    app = App("noted")
    store = Stores.key_value_store("seen", str, int, logged=False)
    grouped = app.stream("in", key=str, value=int).group_by(str, key=str, value=int)
    counts = grouped.count(name="counts")
    counts.to_stream().process(Idle, stores=[store], key=str, value=int).foreach(
        lambda value: None, step="look"
    )
    program = loaded(app, {"statestore_cache_max_bytes": 0})
    found = [(note.kind, note.step) for note in notes(make_plan(program.built, {"in": 2}), program)]
    assert ("not handed over", "seen") in found
    assert ("side effect", "look") in found
    assert sum(kind == "one legal result" for kind, _ in found) == 2
    # A single task writes what a single task reads: live has no other result.
    alone = notes(make_plan(program.built, {"in": 1}), program)
    assert not any(note.kind == "one legal result" for note in alone)
