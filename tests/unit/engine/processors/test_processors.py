"""Processors written as classes: what their context allows, and when their punctuators fire."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from pystreams.dsl.operators.stateless import Foreach, MapValues
from pystreams.engine.codegen import compile_nodes
from pystreams.errors import ConfigError, ProcessingError, TopologyError
from pystreams.ids import TaskId
from pystreams.processor import Cancellable, Processor, PunctuationType
from pystreams.record import Record
from pystreams.topology.nodes import Node, Process
from tests.unit.engine.task_kit import Harness, fn, sink, source, step

STREAM, WALL = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME

AnyProcessor = Processor[Any, Any, Any, Any]


def processor(
    process: Callable[[AnyProcessor, Record[Any, Any]], None],
    init: Callable[[AnyProcessor], None] = lambda self: None,
    close: Callable[[AnyProcessor], None] = lambda self: None,
) -> type[AnyProcessor]:
    """A processor class out of functions."""

    class Made(Processor[Any, Any, Any, Any]):
        def init(self, context: Any) -> None:
            super().init(context)
            init(self)

        def process(self, record: Record[Any, Any]) -> None:
            process(self, record)

        def close(self) -> None:
            close(self)

    return Made


def forward(self: AnyProcessor, record: Record[Any, Any]) -> None:
    self.context.forward(record)


def nodes_of(supplier: Any, *stores: str, fixed_key: bool = False) -> list[Node]:
    return [source(), step("p", "source", Process(supplier, fixed_key), *stores), sink("p")]


def test_a_processor_forwards_to_all_children_or_to_the_one_named() -> None:
    def process(self: AnyProcessor, record: Record[Any, Any]) -> None:
        self.context.forward(record, record.key) if record.key else self.context.forward(record)

    harness = Harness(
        [
            source(),
            step("p", "source", Process(processor(process))),
            step("double", "p", MapValues(fn(lambda value: value * 2))),
            sink("double", name="doubled"),
            sink("p", name="plain"),
        ]
    )
    harness.run((None, "a", 1), ("plain", "b", 2), ("double", "c", 3))
    assert harness.values() == ["aa", "a", "b", "cc"]


def test_the_only_child_can_be_named_too() -> None:
    harness = Harness(nodes_of(processor(lambda self, record: self.context.forward(record, "sink"))))
    harness.run(("k", "a", 1))
    assert harness.values() == ["a"]


def test_an_unknown_child_is_an_error_with_the_names_there_are() -> None:
    harness = Harness(nodes_of(processor(lambda self, record: self.context.forward(record, "sinc"))))
    harness.feed(("k", "a", 1))
    with pytest.raises(ProcessingError, match="did you mean sink"):
        harness.process()


def test_a_changed_time_and_changed_headers_are_in_force_below_and_gone_afterwards() -> None:
    seen: list[Any] = []

    def process(self: AnyProcessor, record: Record[Any, Any]) -> None:
        self.context.forward(record.with_timestamp(70).with_headers((("h", b"1"),)))
        self.context.forward(record)

    def look(self: AnyProcessor, record: Record[Any, Any]) -> None:
        seen.append((record.timestamp, record.headers, self.context.record_metadata()))
        self.context.forward(record)

    harness = Harness(
        [
            source(),
            step("p", "source", Process(processor(process))),
            step("q", "p", Process(processor(look))),
            sink("q"),
        ]
    )
    harness.run(("k", "a", 5))
    metadata = ("in", 0, 0)
    assert seen == [(70, (("h", b"1"),), metadata), (5, (), metadata)]
    assert [(r.timestamp, r.headers) for r in harness.producer.records] == [(70, (("h", b"1"),)), (5, ())]
    assert harness.task.cell.record == ("in", 0, 0, 5, ())


def test_stores_are_open_to_the_processors_that_are_connected_to_them() -> None:
    seen: list[Any] = []
    open_store = processor(lambda self, record: seen.append(self.context.store("mine")))
    harness = Harness(nodes_of(open_store, "mine"), stores={"mine": "the store"})
    harness.run(("k", "a", 1))
    assert seen == ["the store"]
    stranger = Harness(nodes_of(open_store, "other"), stores={"mine": "the store", "other": None})
    stranger.feed(("k", "a", 1))
    with pytest.raises(ProcessingError, match="no access to the store mine"):
        stranger.process()


def test_a_negative_time_is_refused_and_can_be_handled_as_any_failure() -> None:
    back = processor(lambda self, record: self.context.forward(record.with_timestamp(record.timestamp - 10)))
    harness = Harness(nodes_of(back), processing_exception_handler="continue")
    harness.run(("k", "a", 5), ("k", "b", 15))
    assert harness.written() == [("k", "b", 5)]
    assert harness.dropped() == 1


@pytest.mark.parametrize("timestamp", [1.5, "now", None])
def test_a_time_is_a_whole_number(timestamp: Any) -> None:
    def at_another_time(self: AnyProcessor, record: Record[Any, Any]) -> None:
        self.context.forward(Record(record.key, record.value, timestamp))

    harness = Harness(nodes_of(processor(at_another_time)))
    harness.feed(("k", "a", 1))
    with pytest.raises(ProcessingError, match=f"with the timestamp {timestamp!r}"):
        harness.process()


def test_nothing_can_be_forwarded_outside_of_process_and_punctuation() -> None:
    contexts: list[Any] = []
    harness = Harness(nodes_of(processor(forward, init=lambda self: contexts.append(self.context))))
    with pytest.raises(ProcessingError, match="outside of process"):
        contexts[0].forward(Record("k", "a", 1))
    harness.run(("k", "a", 1))
    with pytest.raises(ProcessingError, match="outside of process"):
        contexts[0].forward(Record("k", "a", 1))


def test_a_supplier_must_give_a_new_processor_each_time() -> None:
    shared = processor(forward)()
    with pytest.raises(TopologyError, match="supplier of p gives the same processor"):
        compile_nodes(nodes_of(lambda: shared), "<pystreams test>")


def test_a_supplier_must_give_a_processor() -> None:
    with pytest.raises(TopologyError, match="supplier of p gives None, which is not a processor"):
        Harness(nodes_of(lambda: None))


def test_process_values_keeps_the_key() -> None:
    rename = processor(lambda self, record: self.context.forward(record.with_key("other")))
    harness = Harness(nodes_of(rename, fixed_key=True))
    harness.feed(("k", "a", 1))
    with pytest.raises(ProcessingError, match="changed the key"):
        harness.process()


def test_a_record_that_was_kept_may_be_forwarded_by_a_punctuator() -> None:
    kept: list[Record[Any, Any]] = []

    def init(self: AnyProcessor) -> None:
        self.context.schedule(10, STREAM, lambda now: self.context.forward(kept.pop()) if kept else None)

    keep = processor(lambda self, record: kept.append(record), init)
    harness = Harness(nodes_of(keep, fixed_key=True))
    harness.run(("k", "a", 1))
    assert harness.written() == [("k", "a", 1)]


def test_a_processor_sees_its_task_and_both_times() -> None:
    seen: list[Any] = []

    def process(self: AnyProcessor, record: Record[Any, Any]) -> None:
        context = self.context
        seen.append((context.current_stream_time_ms(), context.current_system_time_ms()))

    harness = Harness(nodes_of(processor(process, init=lambda self: seen.append(self.context.task_id))))
    harness.run(("k", "a", 7), ("k", "b", 3), ("k", "c", 9))
    assert seen == [TaskId(0, 1), (7, 1_000_000), (7, 1_000_000), (9, 1_000_000)]


def test_asking_for_a_commit_ends_the_run_after_the_record() -> None:
    def process(self: AnyProcessor, record: Record[Any, Any]) -> None:
        if record.value == "commit":
            self.context.commit()
        self.context.forward(record)

    harness = Harness(nodes_of(processor(process)))
    harness.feed(("k", "a", 1), ("k", "commit", 2), ("k", "c", 3))
    assert harness.process() == 2
    assert harness.task.commit_requested
    assert [position.offset for position in harness.task.positions().values()] == [2]
    harness.task.after_commit()
    assert not harness.task.commit_requested
    assert not harness.task.commit_needed
    assert harness.process() == 1


def test_init_and_close_are_called_once_and_their_errors_name_the_processor() -> None:
    calls: list[str] = []
    harness = Harness(
        nodes_of(processor(forward, lambda self: calls.append("init"), lambda self: calls.append("close")))
    )
    harness.task.close()
    assert calls == ["init", "close"]

    def fail(self: AnyProcessor) -> None:
        raise ValueError("no")

    with pytest.raises(ProcessingError, match="init of processor p raised ValueError: no"):
        Harness(nodes_of(processor(forward, init=fail)))
    closing = Harness(nodes_of(processor(forward, close=fail)))
    with pytest.raises(ProcessingError, match="close of processor p raised ValueError: no"):
        closing.task.close()


# Punctuation


def ticking(
    kind: PunctuationType, interval: int | timedelta, calls: list[int]
) -> Callable[[AnyProcessor], None]:
    def init(self: AnyProcessor) -> None:
        self.context.schedule(interval, kind, calls.append)

    return init


def test_stream_time_punctuators_fire_on_a_grid_from_0_and_missed_points_fall_together() -> None:
    calls: list[int] = []
    harness = Harness(nodes_of(processor(forward, ticking(STREAM, timedelta(milliseconds=10), calls))))
    harness.run(*[("k", "v", t) for t in (5, 7, 12, 47, 48, 3, 50)])
    assert calls == [5, 12, 47, 50]
    assert harness.metrics.total("punctuate-total") == 4


def test_a_punctuator_fires_right_after_the_record_that_is_due() -> None:
    def init(self: AnyProcessor) -> None:
        self.context.schedule(10, STREAM, lambda now: self.context.forward(Record("tick", f"@{now}", now)))

    harness = Harness(nodes_of(processor(forward, init)))
    harness.run(*[("k", str(t), t) for t in (9, 10, 11, 12, 25, 26)])
    assert harness.values() == ["9", "@9", "10", "@10", "11", "12", "25", "@25", "26"]


def test_a_punctuator_that_a_record_schedules_fires_after_that_record_and_can_cancel_itself() -> None:
    def process(self: AnyProcessor, record: Record[Any, Any]) -> None:
        scheduled: list[Cancellable] = []

        def once(now: int) -> None:
            assert self.context.record_metadata() is None
            self.context.forward(record.with_value(f"{record.value}@{now}").with_timestamp(now))
            scheduled[0].cancel()

        scheduled.append(self.context.schedule(10, STREAM, once))

    harness = Harness(nodes_of(processor(process)))
    harness.run(("k", "a", 3), ("k", "b", 4), ("k", "c", 2))
    assert harness.written() == [("k", "a@3", 3), ("k", "b@4", 4), ("k", "c@4", 4)]


def test_wall_clock_punctuators_fire_an_interval_after_they_were_scheduled() -> None:
    calls: list[int] = []
    harness = Harness(nodes_of(processor(forward, ticking(WALL, 100, calls))))
    start = harness.clock.now_ms()
    assert harness.task.next_wall_clock_punctuation_ms() == start + 100
    assert not harness.task.punctuate_wall_clock(start + 99)
    assert harness.task.punctuate_wall_clock(start + 100)
    assert harness.task.commit_needed
    assert not harness.task.punctuate_wall_clock(start + 199)
    assert harness.task.punctuate_wall_clock(start + 450)
    assert harness.task.next_wall_clock_punctuation_ms() == start + 500
    assert calls == [start + 100, start + 450]


def test_a_punctuator_that_fails_is_a_matter_of_the_processing_handler() -> None:
    def fail(now: int) -> None:
        raise ValueError("tick")

    def init(self: AnyProcessor) -> None:
        self.context.schedule(10, STREAM, fail)

    harness = Harness(nodes_of(processor(forward, init)))
    harness.feed(("k", "a", 1))
    with pytest.raises(ProcessingError, match="step p raised ValueError: tick") as caught:
        harness.process()
    assert "punctuation" in str(caught.value)
    going_on = Harness(nodes_of(processor(forward, init)), processing_exception_handler="continue")
    going_on.run(("k", "a", 1), ("k", "b", 11))
    assert going_on.values() == ["a", "b"]
    assert going_on.dropped() == 2


def test_an_interval_below_a_millisecond_is_an_error() -> None:
    with pytest.raises(ProcessingError, match="least interval is 1 ms") as caught:
        Harness(nodes_of(processor(forward, ticking(WALL, timedelta(microseconds=5), []))))
    assert isinstance(caught.value.__cause__, ConfigError)


def test_a_kind_of_time_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ProcessingError, match="scheduled a punctuator in 'stream_time'") as caught:
        Harness(nodes_of(processor(forward, ticking(cast(PunctuationType, "stream_time"), 10, []))))
    assert isinstance(caught.value.__cause__, ConfigError)


def test_what_fails_below_a_processor_is_the_failing_steps_matter() -> None:
    def fail(value: str) -> None:
        raise ValueError(value)

    nodes = [*nodes_of(processor(forward)), step("below", "p", Foreach(fn(fail)))]
    harness = Harness(nodes, processing_exception_handler="continue")
    harness.run(("k", "a", 1))
    assert harness.values() == ["a"]
    assert harness.dropped() == 1
    stopping = Harness(nodes)
    stopping.feed(("k", "a", 1))
    with pytest.raises(ProcessingError, match="step below raised"):
        stopping.process()
