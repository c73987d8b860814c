"""Nothing closes, expires, pads or punctuates past the bound of stream time; what a raised bound makes final comes with
the next commit, without a record."""

from __future__ import annotations

from typing import Any

import pytest

from pystreams import Stores, StreamsBuilder
from pystreams.processor import Processor, ProcessorContext, PunctuationType
from pystreams.record import Record
from pystreams.stream_time import TIME_MAX
from tests.semantics.bound.bounded_run import BoundedRun, Input
from tests.semantics.bound.programs import FINAL, GRACE, Build, joined, windowed
from tests.semantics.bound.programs import WINDOWS as KINDS

CACHED = 1_000_000


def at(*timestamps: int, topic: str = "in") -> list[Input]:
    return [Input(topic, "a", f"v{timestamp}", timestamp) for timestamp in timestamps]


@pytest.mark.parametrize("cache_bytes", [0, CACHED], ids=["uncached", "cached"])
@pytest.mark.parametrize("how", ["on close", "suppressed"])
def test_windows_close_up_to_the_bound_and_the_others_when_it_moves(how: str, cache_bytes: int) -> None:
    with BoundedRun(FINAL[f"tumbling, {how}"], cache_bytes) as run:
        run.limit(31)
        run.feed(*at(5, 205, 6, 15))
        run.commit()
        assert [key for key, *_ in run.records()] == ["a@0/10"]
        run.limit(40)
        assert run.task.stream.commit_needed
        run.commit()
        assert [key for key, *_ in run.records()] == ["a@0/10", "a@10/20"]
        run.limit(TIME_MAX)
        run.commit()
        assert [key for key, *_ in run.records()] == ["a@0/10", "a@10/20"]


@pytest.mark.parametrize("cache_bytes", [0, CACHED], ids=["uncached", "cached"])
def test_a_suppressed_window_comes_once_although_its_last_change_was_in_a_cache(cache_bytes: int) -> None:
    with BoundedRun(FINAL["tumbling, suppressed"], cache_bytes) as run:
        run.limit(20)
        run.feed(*at(5, 100))
        run.commit()
        # The window of 100 becomes the least recently used one, and is flushed first.
        run.feed(*at(101, 6))
        run.limit(60)
        run.commit()
        assert run.records() == [("a@0/10", "2", 6)]


def test_records_without_a_match_are_padded_up_to_the_bound() -> None:
    with BoundedRun(joined("outer_join")) as run:
        run.limit(36)
        run.feed(*at(0, 300, 50))
        run.commit()
        assert run.records() == [("a", "v0+None", 0)]
        run.feed(*at(60, topic="other"))
        run.limit(TIME_MAX)
        run.commit()
        assert run.records() == [("a", "v0+None", 0), ("a", "v50+v60", 60)]


def test_no_commit_is_asked_for_unless_a_time_moves_or_the_bound_ends() -> None:
    with BoundedRun(windowed(KINDS["tumbling"])) as run:
        stream = run.task.stream
        run.limit(50)
        run.feed(*at(5))
        run.commit()
        run.limit(70)
        assert (stream.commit_needed, stream.commit_requested) == (False, False)
        run.feed(*at(90))
        run.commit()
        run.limit(80)
        assert (stream.commit_needed, stream.commit_requested) == (True, False)
        run.limit(TIME_MAX)
        assert (stream.commit_needed, stream.commit_requested) == (True, True)


class Ticker(Processor[str, str, str, str]):
    """Forwards the time of each punctuation, and of each record the stream time that it sees."""

    def init(self, context: ProcessorContext[Any, Any]) -> None:
        super().init(context)
        context.schedule(10, PunctuationType.STREAM_TIME, self.tick)

    def tick(self, timestamp: int) -> None:
        self.context.forward(Record("tick", str(self.context.current_stream_time_ms()), timestamp))

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(Record("record", str(self.context.current_stream_time_ms()), record.timestamp))


def ticking(builder: StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).process(Ticker, key=str, value=str).to("out")


def test_punctuators_of_stream_time_are_called_up_to_the_bound() -> None:
    with BoundedRun(ticking) as run:
        run.limit(25)
        run.feed(*at(3, 47, 30))
        run.commit()
        assert run.records() == [
            ("record", "3", 3), ("tick", "3", 3), ("record", "25", 47), ("tick", "25", 25), ("record", "25", 30),
        ]  # fmt: skip
        assert (run.task.stream.stream_time, run.task.stream.time_seen) == (25, 47)
        run.limit(TIME_MAX)
        run.commit()
        assert run.records()[5:] == [("tick", "47", 47)]


def storing(store: Any) -> Build:
    """A processor that puts each record into a store of its own."""

    class Writer(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.store(store.name).put(record.key, record.value, record.timestamp)

    def build(builder: StreamsBuilder) -> None:
        builder.add_state_store(store)
        builder.stream("in", key=str, value=str).process(Writer, stores=[store.name], key=str, value=str).to(
            "out"
        )

    return build


HOUR = 3_600_000


@pytest.mark.parametrize(
    "store",
    [
        Stores.window_store("s", str, str, size=10, retention=HOUR, persistent=True),
        Stores.window_store("s", str, str, size=10, retention=HOUR, persistent=False),
    ],
    ids=["on disk", "in memory"],
)
def test_window_stores_keep_what_is_within_their_retention_before_the_bound(store: Any) -> None:
    with BoundedRun(storing(store)) as run:
        run.limit(HOUR)
        run.feed(*at(20 * HOUR, 10))
        run.commit()
        opened = run.task.state.stores["s"]
        assert opened.fetch("a", 10) == "v10"
        run.feed(*at(15))
        assert (run.dropped, opened.fetch("a", 15)) == (0, "v15")
        run.limit(TIME_MAX)
        run.commit()
        assert opened.fetch("a", 15) is None
        run.feed(*at(16))
        assert run.dropped == 1


def test_versioned_stores_take_versions_that_are_within_their_history_before_the_bound() -> None:
    with BoundedRun(storing(Stores.versioned_store("s", str, str, history=100))) as run:
        run.limit(100)
        run.feed(*at(5000, 40))
        store = run.task.state.stores["s"]
        assert (run.dropped, store.get("a", 50).value, store.get("a").value) == (0, "v40", "v5000")
        run.limit(TIME_MAX)
        run.commit()
        assert store.get("a", 50) is None


def test_a_commit_holds_the_time_in_force_and_what_was_seen() -> None:
    with BoundedRun(windowed(KINDS["tumbling"])) as run:
        run.limit(30)
        run.feed(*at(5, 100))
        run.commit()
        assert (run.metadata.stream_time, run.metadata.time_seen) == (30, 100)
        run.limit(TIME_MAX)
        run.commit()
        assert (run.metadata.stream_time, run.metadata.time_seen) == (100, 100)
        assert run.metadata.own == {"py/KSTREAM-AGGREGATE-0000000002/stream_time": 100}


@pytest.mark.parametrize("wipe", [False, True], ids=["kept", "wiped"])
@pytest.mark.parametrize("atomic", [True, False], ids=["exactly once", "at least once"])
@pytest.mark.parametrize("how", ["on close", "suppressed"])
@pytest.mark.parametrize("cache_bytes", [0, CACHED], ids=["uncached", "cached"])
def test_another_owner_goes_on_at_the_times_of_the_commit(
    how: str, atomic: bool, wipe: bool, cache_bytes: int
) -> None:
    with BoundedRun(FINAL[f"tumbling, {how}"], cache_bytes) as run:
        run.limit(30)
        run.feed(*at(5, 6 * HOUR))
        run.commit()
        run.feed(*at(12 * HOUR))
        run.crash(bound_ms=-1, wipe=wipe, atomic=atomic)
        assert run.task.stream.stream_time == 30
        run.feed(*at(15, 12))
        run.limit(45)
        run.commit()
        run.crash(bound_ms=-1, wipe=wipe, atomic=atomic)
        assert run.dropped == 0
        # No record comes after this restart: what was seen before it is enough.
        run.limit(TIME_MAX)
        run.commit()
        assert run.records() == [
            ("a@0/10", "1", 5),
            ("a@10/20", "2", 15),
            (f"a@{6 * HOUR}/{6 * HOUR + 10}", "1", 6 * HOUR),
        ]


def test_after_a_restart_without_a_bound_what_was_held_back_comes_with_the_first_commit() -> None:
    with BoundedRun(FINAL["tumbling, suppressed"]) as run:
        run.limit(0)
        run.feed(*at(5, 5 + GRACE + 10))
        run.commit()
        run.crash(bound_ms=TIME_MAX, wipe=True)
        assert run.task.stream.commit_needed
        run.commit()
        assert run.records() == [("a@0/10", "1", 5)]
