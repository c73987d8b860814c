"""Stream time in force is what was seen, up to the bound; it never goes back, and a raised bound waits for a flush."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pystreams.stream_time import TIME_MAX, Observed, StreamTime

TIMES = st.integers(-1, 60)


def no_flush() -> None:
    """There are no caches."""


def test_without_a_bound_the_greatest_timestamp_is_in_force() -> None:
    time = StreamTime().of_step(0)
    for timestamp in (5, 9, 7):
        time.see(timestamp)
    assert (time.ms, time.seen_ms, time.held_ms) == (9, 9, None)


def test_a_bound_holds_what_was_seen_beyond_it() -> None:
    task = StreamTime()
    step, store = task.of_step(0), task.of_store()
    task.limit(10)
    for timestamp in (5, 30, 20):
        step.see(timestamp)
    assert (step.ms, step.seen_ms, step.held_ms) == (10, 30, 30)
    assert (store.ms, store.held_ms) == (-1, None)


def test_each_step_has_only_what_reached_it() -> None:
    task = StreamTime()
    one, other = task.of_step(0), task.of_step(1)
    task.limit(10)
    one.see(30)
    other.see(12)
    task.limit(20)
    task.flushed(no_flush)
    assert (one.ms, other.ms) == (20, 12)


def test_a_lower_bound_leaves_the_time_in_force() -> None:
    task = StreamTime()
    step = task.of_step(0)
    step.see(50)
    assert not task.limit(10)
    step.see(60)
    assert (step.ms, step.seen_ms) == (50, 60)


def test_a_raised_bound_comes_into_force_with_a_flush() -> None:
    task = StreamTime()
    step = task.of_step(0)
    task.limit(10)
    step.see(40)
    assert task.limit(30)
    step.see(35)
    assert step.ms == 10
    assert task.flushed(no_flush)
    assert step.ms == 30
    assert not task.flushed(no_flush)


def test_steps_move_in_their_order_and_stores_last_with_a_flush_after_each_that_emits() -> None:
    task = StreamTime()
    journal: list[str] = []

    def observed(name: str, time: Observed) -> None:
        time.see(40)
        time.on_move = lambda: journal.append(f"{name} moves, the store is at {store.ms}")

    store = task.of_store()
    task.limit(10)
    store.see(40)
    observed("later", task.of_step(7))
    observed("earlier", task.of_step(3))
    task.limit(TIME_MAX)
    task.flushed(lambda: journal.append("flush"))
    assert journal == [
        "earlier moves, the store is at 10",
        "flush",
        "later moves, the store is at 10",
        "flush",
    ]
    assert store.ms == 40


def test_a_step_that_goes_on_keeps_the_time_in_force_until_the_next_flush() -> None:
    task = StreamTime()
    step = task.of_step(0)
    step.go_on(20, 50)
    assert (step.ms, step.seen_ms) == (20, 50)
    assert task.limit(task.bound_ms)
    task.flushed(no_flush)
    assert (step.ms, step.held_ms) == (50, None)


EVENTS = st.lists(
    st.one_of(st.tuples(st.just("see"), TIMES), st.tuples(st.just("limit"), TIMES), st.just(("flush", 0)))
)


@given(EVENTS)
def test_a_timestamp_that_is_not_beyond_all_that_was_seen_need_not_be_reported(
    events: list[tuple[str, int]],
) -> None:
    task = StreamTime()
    told, spared = task.of_step(0), task.of_step(1)
    for what, ms in events:
        if what == "see":
            told.see(ms)
            if ms > spared.ms and (spared.unbounded or ms > spared.beyond_ms):
                spared.see(ms)
        elif what == "limit":
            task.limit(ms)
        else:
            task.flushed(no_flush)
        assert (spared.ms, spared.seen_ms) == (told.ms, told.seen_ms)


@given(EVENTS)
def test_time_in_force_is_the_lesser_of_seen_and_bound_and_never_goes_back(
    events: list[tuple[str, int]],
) -> None:
    task = StreamTime()
    step = task.of_step(0)
    bound = following = TIME_MAX
    in_force = seen = -1
    for what, ms in events:
        if what == "see":
            step.see(ms)
            seen = max(seen, ms)
        elif what == "limit":
            task.limit(ms)
            following, bound = ms, min(bound, ms)
        else:
            task.flushed(no_flush)
            bound = following
        in_force = max(in_force, min(seen, bound))
        assert (step.ms, step.seen_ms) == (in_force, seen)
