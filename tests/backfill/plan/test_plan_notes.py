"""A plan says which results are one of several legal ones, and what a backfill leaves out."""

from __future__ import annotations

from pystreams import App, Stores
from pystreams.backfill.api import backfill
from pystreams.backfill.application import loaded
from pystreams.backfill.plan.notes import PlanNote, notes
from pystreams.backfill.plan.slices import make_plan
from pystreams.processor import Processor, ProcessorContext, PunctuationType
from pystreams.record import Record
from tests.backfill import programs
from tests.backfill.kit import lines, memory


def told(app: App, partitions: int = 2, **settings: object) -> list[tuple[str, str]]:
    """Kind and step of each note."""
    return [(note.kind, note.step) for note in noted(app, partitions, **settings)]


def noted(app: App, partitions: int = 2, **settings: object) -> list[PlanNote]:
    found = loaded(app, settings)
    topics = {
        topic: partitions
        for sub in found.built.subtopologies
        for topic in sub.source_topics
        if topic not in found.built.internal_topics
    }
    return notes(make_plan(found.built, topics), found)


class Idle(Processor[str, str, str, str]):
    """Does nothing."""


class OnTheClock(Processor[str, int, str, int]):
    """Forwards a record each millisecond of wall-clock time."""

    def init(self, context: ProcessorContext[str, int]) -> None:
        super().init(context)
        context.schedule(
            1, PunctuationType.WALL_CLOCK_TIME, lambda now: self.context.forward(Record("tick", 1, now))
        )

    def process(self, record: Record[str, int]) -> None:
        self.context.forward(record)


def test_a_topology_without_internal_topics_has_one_result():
    app = App("summed", statestore_cache_max_bytes=0)
    app.stream("in", key=str, value=int).group_by_key().reduce(int.__add__, name="sums").to_stream().to("out")
    assert told(app) == []


def test_what_several_tasks_feed_may_come_in_another_order():
    ((kind, step),) = told(programs.word_count(statestore_cache_max_bytes=0))
    assert kind == "one legal result"
    assert "AGGREGATE" in step


def test_what_one_task_feeds_comes_in_one_order():
    assert told(programs.word_count(statestore_cache_max_bytes=0), partitions=1) == []


def test_a_cache_passes_on_other_updates_than_live_does():
    app = App("summed")
    app.stream("in", key=str, value=int).group_by_key().reduce(int.__add__, name="sums").to_stream().to("out")
    (note,) = noted(app)
    assert note.kind == "one legal result"
    assert "REDUCE" in note.step
    assert "by number of records" in note.text


def test_a_cache_whose_updates_nobody_sees_is_not_reported():
    app = App("silent")
    app.stream("in", key=str, value=str).group_by_key().count(name="counts")
    assert told(app) == []


def test_a_topic_whose_partitions_get_records_of_several_tasks_has_several_orders():
    def selected(**settings):
        app = App("selected")
        app.stream("in", key=str, value=str).select_key(lambda key, value: value).to("out", **settings)
        return app

    def kept(**settings):
        app = App("kept")
        app.stream("in", key=str, value=str).map_values(str.upper).to("out", **settings)
        return app

    assert told(selected()) == [("one legal result", "out")]
    assert told(selected(), partitions=1) == []
    assert told(kept()) == []
    assert told(kept(partitioner=lambda topic, key, value, count: 0)) == [("one legal result", "out")]


def test_so_has_one_with_another_number_of_partitions():
    app = App("wider")
    app.stream("in", key=str, value=str).to("out")
    found = loaded(app, {})
    assert [note.step for note in notes(make_plan(found.built, {"in": 2, "out": 3}), found)] == ["out"]
    assert notes(make_plan(found.built, {"in": 2, "out": 2}), found) == []


def test_a_sub_topology_that_is_visited_again_is_reported():
    texts = [note.text for note in noted(programs.self_joined(), partitions=1)]
    assert any("processed after all of amounts" in text for text in texts)


def test_a_processor_has_its_exemptions_once():
    app = App("processors")
    app.stream("in", key=str, value=str).process(Idle, step="idle").to("out", key=str, value=str)
    assert told(app, partitions=1) == [("exempt", "idle")]


def test_punctuation_by_the_clock_never_fires(tmp_path):
    app = App("clock")
    app.stream("in", key=str, value=int).process(OnTheClock).to("out", key=str, value=int)
    history = {"in": [lines((f"k{n}", n, n) for n in range(200))]}
    result = backfill(app, sources=memory(history), staging=tmp_path, commit_records=10)
    assert [record.key for record in result.sink("out")[0]] == [b"k%d" % n for n in range(200)]


def test_a_processor_behind_an_internal_topic_sees_other_offsets():
    app = App("behind")
    stream = app.stream("in", key=str, value=str).repartition(name="again", key=str, value=str)
    stream.process(Idle, step="idle").to("out", key=str, value=str)
    assert [text for _, text in ((n.step, n.text) for n in noted(app)) if "offsets" in text]


def test_side_effects_and_wall_clock_times_are_reported():
    app = App("effects", default_timestamp_extractor="wall_clock")
    app.stream("in", key=str, value=str).peek(print, step="look").to("out")
    assert {(kind, step) for kind, step in told(app)} >= {("side effect", "look")}
    assert "exempt" in {kind for kind, _ in told(app)}


def test_a_sink_that_is_chosen_by_record_is_reported():
    app = App("chosen")
    app.stream("in", key=str, value=str).to(lambda key, value: value)
    assert [kind for kind, _ in told(app)] == ["exempt"]


def test_a_store_without_changelog_is_not_handed_over():
    app = App("unlogged")
    app.stream("in", key=str, value=str).group_by_key().count(name="counts", logged=False)
    assert told(app) == [("not handed over", "counts")]


def test_a_store_that_is_restored_from_its_topic_is_handed_over():
    app = App("reusing", topology_optimization="all", statestore_cache_max_bytes=0)
    app.table("in", key=str, value=str, name="all").to_stream().to("out")
    assert told(app) == []


def test_which_entries_were_used_last_is_not_handed_over():
    app = App("few", statestore_cache_max_bytes=0)
    app.add_state_store(Stores.lru_map("some", str, str, max_entries=10))
    app.stream("in", key=str, value=str).process(Idle, stores=["some"])
    assert ("exempt", "some") in told(app)
