"""One processor alone, on a context that keeps what it does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pystreams import (
    FixedKeyProcessor,
    Processor,
    PunctuationType,
    Record,
    Stores,
    ValueTransformer,
    Windowed,
)
from pystreams.errors import ConfigError, ProcessingError, StateError, TopologyError
from pystreams.ids import TaskId
from pystreams.testing import CapturedForward, MockProcessorContext


class Counter(Processor[str, str, str, int]):
    """Counts by key; every second tells each count, by name to the child "slow"."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.counts = context.store("counts")
        self.schedule = context.schedule(timedelta(seconds=1), PunctuationType.WALL_CLOCK_TIME, self.tell)

    def process(self, record: Record[str, str]) -> None:
        count = (self.counts.get(record.key) or 0) + 1
        self.counts.put(record.key, count)
        self.context.forward(record.with_value(count))
        if record.value == "last":
            self.context.commit()
            self.schedule.cancel()

    def tell(self, time_ms: int) -> None:
        with self.counts.all() as counts:
            for key, count in counts:
                self.context.forward(Record(key, count, time_ms), child="slow")


def test_what_a_processor_forwards_stores_and_schedules_is_kept() -> None:
    context = MockProcessorContext[str, int]()
    counts = context.add_store(Stores.key_value_store("counts", str, int))
    counts.put("b", 6)
    counter = Counter()
    counter.init(context)
    (tick,) = context.scheduled
    assert (tick.interval_ms, tick.type, tick.start_time) == (1000, PunctuationType.WALL_CLOCK_TIME, None)
    counter.process(Record("a", "x", 10, (("h", b"1"),)))
    counter.process(Record("b", "y", 5))
    assert context.forwarded() == [
        CapturedForward(Record("a", 1, 10, (("h", b"1"),))),
        CapturedForward(Record("b", 7, 5)),
    ]
    assert counts.get("b") == 7
    context.reset_forwarded()
    tick.punctuator(99)
    slow = [CapturedForward(Record(key, n, 99), "slow") for key, n in (("a", 1), ("b", 7))]
    assert context.forwarded() == context.forwarded("slow") == slow
    assert context.forwarded("fast") == []
    assert (context.committed, tick.cancelled) == (False, False)
    counter.process(Record("a", "last", 11))
    assert (context.committed, tick.cancelled) == (True, True)
    context.reset_committed()
    assert (context.committed, tick.cancelled) == (False, True)
    context.close()


def test_a_test_says_when_and_where_a_record_is() -> None:
    context = MockProcessorContext[str, str]({"application_id": "mine", "poll_ms": 7}, task_id=TaskId(1, 2))
    assert (context.application_id, context.config.poll_ms, str(context.task_id)) == ("mine", 7, "1_2")
    assert (context.current_stream_time_ms(), context.current_system_time_ms()) == (-1, 0)
    assert context.record_metadata() is None
    context.set_current_stream_time_ms(40)
    context.set_current_system_time_ms(41)
    context.set_record_metadata("in", 3, 5)
    assert (context.current_stream_time_ms(), context.current_system_time_ms()) == (40, 41)
    assert context.record_metadata() == ("in", 3, 5)
    context.set_record_metadata(None)
    assert context.record_metadata() is None
    context.metrics.counter("mine").add(2)
    assert context.metrics.total("mine") == 2


def test_a_folder_is_there_if_it_is_given(tmp_path: Path) -> None:
    assert MockProcessorContext[Any, Any](state_dir=tmp_path).state_dir == tmp_path
    with pytest.raises(ConfigError, match="no folder"):
        _ = MockProcessorContext[Any, Any]().state_dir


@pytest.mark.parametrize("persistent", [True, False])
def test_every_kind_of_store_can_be_had(persistent: bool) -> None:
    with MockProcessorContext[Any, Any]() as context:
        windows = context.add_store(
            Stores.window_store("w", str, int, size=10, retention=100, persistent=persistent)
        )
        sessions = context.add_store(
            Stores.session_store("s", str, int, retention=100, persistent=persistent)
        )
        versions = context.add_store(
            Stores.versioned_store("v", str, int, history=100, persistent=persistent)
        )
        tables = context.add_store(
            Stores.timestamped_key_value_store("t", str, int, persistent=persistent, cached=True)
        )
        windows.put("a", 1, 20)
        sessions.put(Windowed("a", 5, 6), 2)
        versions.put("a", 3, 7)
        tables.put("a", (4, 8))
        assert (windows.fetch("a", 20), sessions.fetch_session("a", 5, 6)) == (1, 2)
        assert (versions.get("a"), tables.get("a")) == ((3, 7, None), (4, 8))
        assert context.store("w") is windows


def test_a_late_write_is_dropped_and_counted() -> None:
    context = MockProcessorContext[Any, Any]()
    windows = context.add_store(Stores.window_store("w", str, int, size=10, retention=10, persistent=False))
    windows.put("a", 1, 100)
    windows.put("a", 1, 0)
    assert context.metrics.total("dropped-records-total") == 1


def test_mistakes_are_reported_as_a_task_reports_them() -> None:
    context = MockProcessorContext[Any, Any]()
    with pytest.raises(TopologyError, match="no access to the store x"):
        context.store("x")
    with pytest.raises(ProcessingError, match="forwarded a tuple, which is not a record"):
        context.forward(("k", "v"))  # type: ignore[arg-type]
    with pytest.raises(ProcessingError, match="negative timestamp -1"):
        context.forward(Record("k", "v", -1))
    with pytest.raises(ConfigError, match="every 0"):
        context.schedule(0, PunctuationType.STREAM_TIME, print)
    context.add_store(Stores.key_value_store("x", str, str))
    with pytest.raises(StateError, match="already has a store x"):
        context.add_store(Stores.key_value_store("x", str, str))


def test_an_anchored_punctuator_keeps_its_start() -> None:
    context = MockProcessorContext[Any, Any]()
    six = datetime(2026, 11, 22, 6, tzinfo=UTC)
    captured = context.schedule(
        timedelta(days=1), PunctuationType.WALL_CLOCK_TIME, lambda _: None, start_time=six
    )
    assert captured.start_time == six
    assert context.scheduled == [captured]


def test_it_serves_fixed_key_processors_and_transformers_of_values() -> None:
    class Twice(FixedKeyProcessor[str, int, int]):
        def process(self, record: Record[str, int]) -> None:
            self.context.forward(record.with_value(record.value * 2))

    class Longer(ValueTransformer[str, str, str]):
        def transform(self, key: str, value: str | None) -> str | None:
            return f"{value} in {self.context.application_id}"

    context = MockProcessorContext[str, int]({"application_id": "app"})
    twice, longer = Twice(), Longer()
    twice.init(context)
    longer.init(context)
    twice.process(Record("k", 4, 1))
    assert [one.record.value for one in context.forwarded()] == [8]
    assert longer.transform("k", "v") == "v in app"
