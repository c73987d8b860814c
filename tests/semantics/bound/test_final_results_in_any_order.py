"""With a bound that lets nothing older than the grace come, records in any order give the results that they would have
given in the order of time: however the bound moves, with and without caches, commits, crashes and restored stores."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pystreams.stream_time import TIME_MAX
from tests.examples import examples
from tests.semantics.bound.bounded_run import BoundedRun, Input
from tests.semantics.bound.programs import APART, FINAL, GRACE, UPDATING, Build

#: Joins that pad with None what found no match.
PADDED = {"left join", "outer join"}

CACHES = st.sampled_from([0, 400, 1_000_000])


class Step(NamedTuple):
    """A record, in the order in which the task gets them, and what comes before it."""

    record: Input
    #: The bound is by so much lower than it could be.
    slack: int
    before: str


@st.composite
def histories(draw: Any) -> list[Step]:
    """Records with times of their own, in any order. Sliding windows have a rule of their own for the time before their
    first size."""
    times = draw(st.lists(st.integers(20, 300), min_size=1, max_size=25, unique=True))
    return [
        Step(
            Input(draw(st.sampled_from(["in", "other"])), draw(st.sampled_from("ab")), f"v{time}", time),
            draw(st.integers(0, 60)),
            draw(
                st.sampled_from(
                    ["", "", "", "commit", "limit", "limit", "limit, commit", "crash", "crash, wiped"]
                )
            ),
        )
        for time in times
    ]


def bounded(build: Build, history: list[Step], cache_bytes: int, early_ms: int = GRACE) -> BoundedRun:
    """A run in the order of the history, with a bound of at most the least time still to come, plus ``early_ms``."""
    run = BoundedRun(build, cache_bytes)
    run.limit(-1)
    topics = run.topics
    still = [step for step in history if step.record.topic in topics]
    for place, step in enumerate(still):
        bound = min(later.record.timestamp for later in still[place:]) + early_ms - step.slack
        if "limit" in step.before:
            run.limit(bound)
        if "commit" in step.before:
            run.commit()
        if "crash" in step.before:
            run.crash(bound_ms=-1, wipe="wiped" in step.before)
        run.feed(step.record)
    run.limit(TIME_MAX)
    run.commit()
    return run


def in_order(build: Build, history: list[Step]) -> BoundedRun:
    """A finished run in the order of time, without a bound."""
    run = BoundedRun(build, 0)
    records = sorted((step.record for step in history), key=lambda record: record.timestamp)
    for record in records:
        if record.topic in run.topics:
            run.feed(record)
            run.commit()
    return run


#: Behind the bound, but within the grace, and its match comes later.
WAITS_FOR_ITS_MATCH = [
    Step(Input("in", "a", "v20", 20), 0, "limit"),
    Step(Input("in", "a", "v201", 201), 0, "commit"),
    Step(Input("in", "a", "v23", 23), 0, ""),
    Step(Input("other", "a", "v21", 21), 0, ""),
]

#: When the bound rises, neither window has closed. The next record closes the first one.
CLOSES_AFTER_THE_BOUND_ROSE = [
    Step(Input("in", "a", "v20", 20), 0, ""),
    Step(Input("in", "a", "v21", 21), 0, ""),
    Step(Input("in", "a", "v56", 56), 0, "limit, commit"),
]


@pytest.mark.parametrize("program", FINAL)
@examples(5)
@example(history=WAITS_FOR_ITS_MATCH, cache_bytes=0)
@example(history=CLOSES_AFTER_THE_BOUND_ROSE, cache_bytes=0)
@given(history=histories(), cache_bytes=CACHES)
def test_final_results_are_complete_and_come_once(
    program: str, history: list[Step], cache_bytes: int
) -> None:
    with (
        in_order(FINAL[program], history) as ordered,
        # As in Java, a record is padded at once if its window has ended, without the grace.
        bounded(FINAL[program], history, cache_bytes, APART if program in PADDED else GRACE) as run,
    ):
        if program in PADDED:
            # In the order of time some come only with a later record, because Java does not look for them before.
            assert not Counter(ordered.records()) - Counter(run.records())
            for timestamp in (1000, 2000):
                for one in (ordered, run):
                    one.feed(Input("in", "end", "x", timestamp))
                    one.commit()
        assert (run.dropped, ordered.dropped) == (0, 0)
        assert Counter(run.records()) == Counter(ordered.records())


@pytest.mark.parametrize("program", UPDATING)
@examples(5)
@given(history=histories(), cache_bytes=CACHES)
def test_the_last_update_of_each_window_is_complete(
    program: str, history: list[Step], cache_bytes: int
) -> None:
    with (
        in_order(UPDATING[program], history) as ordered,
        bounded(UPDATING[program], history, cache_bytes) as run,
    ):
        assert run.dropped == 0
        assert last_of_each(run) == last_of_each(ordered)


def last_of_each(run: BoundedRun) -> dict[str, str]:
    """The last value of each key that was not deleted."""
    last = {key: value for key, value, _ in run.records()}
    return {key: value for key, value in last.items() if value not in (None, "None")}
