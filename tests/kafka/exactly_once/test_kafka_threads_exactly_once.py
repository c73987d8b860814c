"""Exactly once, threads that fail in the middle of a transaction are replaced, others come and go while input comes:
every count is written once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from pystreams.app import App
from pystreams.runtime.streams import Streams
from pystreams.runtime.uncaught import UncaughtExceptionResponse
from tests.kafka.support import Cluster
from tests.live.counted_input import CountedInput
from tests.live.support import TIMEOUT_S, caught_up, eventually, run_to_the_end, running
from tests.live.test_assignment import tasks_of
from tests.live.test_failures import responding

PARTITIONS = 4


@pytest.fixture
def written(cluster: Cluster) -> CountedInput:
    cluster.broker = cluster.broker_with(exactly_once=True)
    return CountedInput(cluster, "counting", PARTITIONS)


def counting(written: CountedInput, look: Callable[[int], None] = lambda value: None, **settings: Any) -> App:
    """Without a cache every change of a count is an output."""
    app = written.log.app("counting", statestore_cache_max_bytes=0, **settings)
    numbers = app.stream("in", key=str, value=int).peek(look)
    numbers.group_by_key().count(name="counts").to_stream().to("out")
    return app


def is_open(written: CountedInput) -> bool:
    """Whether results are written that are not committed."""
    return any(open_partitions(written))


def open_partitions(written: CountedInput) -> list[bool]:
    """Whether each partition has results that are not committed."""
    admin, results = written.log.admin, written.log.partitions("out")
    ends, stable = admin.end_offsets(results), admin.stable_end_offsets(results)
    return [ends[partition] != stable[partition] for partition in results]


def check(written: CountedInput) -> None:
    """Every count of every key was written once, in order."""
    found: dict[str, list[int]] = defaultdict(list)
    for record in written.log.read("out"):
        found[record.key].append(record.value)
    assert found == {key: list(range(1, count + 1)) for key, count in written.counts.items()}


def test_a_thread_that_fails_in_the_middle_of_a_transaction_is_replaced_and_nothing_is_written_twice(
    written: CountedInput,
):
    looked_at: list[int] = []
    failures: list[int] = []

    def trap(value: int) -> None:
        if value == 250 and not failures:
            eventually(lambda: is_open(written), "what came before is written")
            failures.append(len(looked_at))
            looked_at.clear()
            raise ValueError("a hiccup")
        looked_at.append(value)

    written.write(200)
    run_to_the_end(written.log, counting(written, trap))
    looked_at.clear()
    # Only the end commits.
    app = counting(written, trap, commit_interval_ms=600_000)
    streams = written.log.start(app, prepare=responding(UncaughtExceptionResponse.REPLACE_THREAD))
    running(streams)
    written.write(300)
    eventually(lambda: len(looked_at) == 300 and failures, "the new thread has done all of it again")
    written.write(100)
    eventually(lambda: len(looked_at) == 400, "it goes on")
    assert 0 < failures[0] < 300
    assert streams.metrics.total("failed-stream-threads") == 1
    assert streams.close(1000 * TIMEOUT_S)
    assert streams.failure is None
    check(written)


def shares(streams: Streams) -> list[int]:
    """How many tasks each thread has."""
    return sorted(map(len, tasks_of(streams).values()))


def test_threads_that_come_and_go_while_input_comes_write_nothing_twice(written: CountedInput):
    # Transactions stay open for long enough to see them. A key's results are in the partition of its input, so all
    # threads have one open if each partition has.
    streams = written.log.start(counting(written, commit_interval_ms=3_000))
    running(streams)

    def all_are_at_work() -> bool:
        written.write(50)
        return all(open_partitions(written))

    def come_to(expected: list[int]) -> None:
        def while_input_comes() -> bool:
            written.write(50)
            return shares(streams) == expected

        eventually(while_input_comes, f"threads with {expected} tasks")
        before = written.log.committed("counting")
        written.write(50)
        eventually(lambda: written.log.committed("counting") != before, "a commit")

    for _ in range(2):
        eventually(all_are_at_work, "each thread has a transaction")
        assert streams.add_stream_thread() is not None
        come_to([2, 2])
        eventually(all_are_at_work, "each thread has a transaction")
        assert streams.remove_stream_thread() is not None
        come_to([4])
    caught_up(streams)
    assert streams.metrics.total("failed-stream-threads") == 0
    assert streams.close(1000 * TIMEOUT_S)
    check(written)
