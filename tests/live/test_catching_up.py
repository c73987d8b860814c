"""An application that comes late gives the results of having been there: behind its own topics, stream time waits for
the tasks that lag, and what is final comes once, before it counts as caught up."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest

from pystreams import App, EmitStrategy, Suppressed, TimeWindows
from pystreams.testing import TopologyTestDriver
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually, run_to_the_end, running

pytestmark = [pytest.mark.live, pytest.mark.both_logs]

MINUTE = 60_000
START = 1_700_000_040_000 // (5 * MINUTE) * (5 * MINUTE)
PARTITIONS = 4
WINDOWS = TimeWindows.tumbling(5 * MINUTE, grace=MINUTE)
ON_CLOSE = EmitStrategy.ON_WINDOW_CLOSE


def write_orders(log: Log, seed: int, *, hours: int = 4, each: int = 500) -> dict[int, Counter[str]]:
    """Orders of some hours in each partition, up to 20 s out of order, one partition after the other. Gives how many
    there are by the start of each window and city."""
    chance, counts = random.Random(seed), dict[int, Counter[str]]()
    for partition in range(PARTITIONS):
        orders = []
        for number in range(each):
            time = (
                START + number * hours * 60 * MINUTE // each - chance.choice((0, 0, chance.randrange(20_000)))
            )
            city = f"c{chance.randrange(3)}"
            counts.setdefault(time // (5 * MINUTE) * 5 * MINUTE, Counter())[city] += 1
            orders.append((city, 1, max(0, time)))
        log.write("orders", orders, partition=partition)
    return counts


def by_city(log: Log, **settings: Any) -> App:
    """Counts orders by city and window behind a repartition, final results only."""
    app = log.app("orders", window_changelog_retention_ms=-1, **settings)
    orders = app.stream("orders", key=str, value=int)
    counted = orders.group_by(lambda key, value: key, key=str).windowed_by(WINDOWS)
    counts = counted.emit_strategy(ON_CLOSE).count(name="counts")
    counts.to_stream().map(lambda key, n: (f"{key.start}/{key.key}", n), key=str, value=int).to("out")
    return app


def closed(counts: dict[int, Counter[str]]) -> list[tuple[str, int]]:
    """The final results: of all windows but the last, which is still open."""
    last = max(counts)
    return sorted(
        (f"{start}/{city}", n) for start, of in counts.items() if start < last for city, n in of.items()
    )


def results(log: Log, topic: str = "out") -> list[tuple[str, int]]:
    return sorted((record.key, record.value) for record in log.read(topic))


@pytest.mark.parametrize("threads", [1, 2])
def test_every_window_is_complete_and_comes_once(log: Log, threads: int) -> None:
    log.create("orders", partitions=PARTITIONS)
    log.create("out")
    counts = write_orders(log, seed=1)
    run_to_the_end(log, by_city(log, num_stream_threads=threads, commit_interval_ms=500))
    assert results(log) == closed(counts)


def test_java_loses_most_of_it(log: Log) -> None:
    log.create("orders", partitions=PARTITIONS)
    log.create("out")
    counts = write_orders(log, seed=1)
    run_to_the_end(log, by_city(log, stream_time="java", commit_interval_ms=500))
    assert sum(n for _, n in results(log)) < 0.5 * sum(n for _, n in closed(counts))


def test_two_clients_share_the_work_and_know_of_each_other_by_commits_alone(log: Log) -> None:
    log.create("orders", partitions=PARTITIONS)
    log.create("out")
    counts = write_orders(log, seed=2)
    clients = [
        log.start(by_city(log, state_dir=log.path / f"state{n}", commit_interval_ms=500)) for n in range(2)
    ]
    for client in clients:
        caught_up(client)
    for client in clients:
        assert client.close(1000 * TIMEOUT_S)
    # On Kafka a task that changes hands repeats what it had not committed.
    assert dict(results(log)) == dict(closed(counts))


def test_two_hops(log: Log) -> None:
    """Final results by city, and from these the sum of each quarter of an hour."""
    log.create("orders", partitions=PARTITIONS)
    log.create("out")
    counts = write_orders(log, seed=3)
    app = log.app("hops", window_changelog_retention_ms=-1, commit_interval_ms=500, num_stream_threads=2)
    orders = app.stream("orders", key=str, value=int)
    counted = orders.group_by(lambda key, value: key, key=str).windowed_by(WINDOWS)
    first = counted.count(name="first").suppress(Suppressed.until_window_closes())
    again = first.to_stream().group_by(lambda key, n: "all", key=str, value=int)
    sums = again.windowed_by(TimeWindows.tumbling(15 * MINUTE, grace=MINUTE)).emit_strategy(ON_CLOSE)
    second = sums.reduce(lambda one, other: one + other, name="second")
    second.to_stream().map(lambda key, n: (str(key.start), n), key=str, value=int).to("out")
    run_to_the_end(log, app)
    expected: Counter[int] = Counter()
    for start, of in counts.items():
        expected[start // (15 * MINUTE) * 15 * MINUTE] += sum(of.values())
    # The last window of the first hop is open, so the last quarters of the second are, too.
    done = [str(start) for start in sorted(expected)[:-1]]
    found = dict(results(log))
    assert found == {start: expected[int(start)] for start in done if start in found}
    assert len(found) >= len(done) - 1


def test_a_run_that_is_stopped_goes_on_where_it_was(log: Log) -> None:
    log.create("orders", partitions=PARTITIONS)
    log.create("out")
    counts = write_orders(log, seed=4)

    def run_for_a_moment() -> None:
        streams = log.start(by_city(log, commit_interval_ms=50, buffered_records_per_partition=10))
        running(streams)
        eventually(lambda: streams.progress().records > 200 or streams.caught_up())
        assert streams.close(1000 * TIMEOUT_S)

    for _ in range(3):
        run_for_a_moment()
    run_to_the_end(log, by_city(log, commit_interval_ms=50))
    assert results(log) == closed(counts)


def test_with_one_partition_the_same_records_are_late_as_in_an_application_that_was_there(log: Log) -> None:
    """Behind a repartition topic nothing can overtake them, so stream time need not wait."""
    log.create("orders", "out")
    times = [START, START + 20 * MINUTE, START + MINUTE, START + 21 * MINUTE, START + 2 * MINUTE]
    log.write("orders", [("c", 1, time) for time in times])
    streams = run_to_the_end(log, by_city(log))
    assert results(log) == [(f"{START}/c", 1)]
    assert streams.metrics.total("late-records-total") == 2


def test_what_a_cache_delays_is_not_late_behind_what_passes_it_by(log: Log) -> None:
    """The records reach the next step at once, their counts by key only with a commit: by then, all records are there,
    and the windows of most counts would be closed."""

    def application() -> App:
        app = log.app("both-ways", window_changelog_retention_ms=-1, commit_interval_ms=500)
        orders = app.stream("orders", key=str, value=int)
        by_key = orders.group_by_key().count(name="by-key")
        both = orders.merge(by_key.to_stream()).group_by(lambda key, value: "all", key=str)
        counts = both.windowed_by(WINDOWS).count(name="counts")
        counts.to_stream().map(lambda key, n: (str(key.start), n), key=str, value=int).to("out")
        return app

    records = [(f"k{n}", 1, START + 10 * n * MINUTE) for n in range(12)]
    with TopologyTestDriver(application()) as driver:
        orders = driver.create_input_topic("orders", key=str, value=int)
        for key, value, time in records:
            orders.pipe_input(key, value, timestamp=time)
        live = driver.create_output_topic("out", key=str, value=int).read_map()
    log.create("orders", "out")
    log.write("orders", records)
    run_to_the_end(log, application())
    assert log.table("out") == live == {str(time): 2 for _, _, time in records}


def test_who_does_not_move_is_given_up(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    """One partition's function hangs. The others are not waited for longer than the limit says."""
    log.create("orders", partitions=PARTITIONS)
    log.create("out")
    write_orders(log, seed=6, hours=1, each=20)
    goes_on = threading.Event()
    app = log.app("hangs", window_changelog_retention_ms=-1, catch_up_wait_max_ms=1_000)
    orders = app.stream("orders", key=str, value=int).peek(lambda value: goes_on.wait(TIMEOUT_S) or None)
    counted = orders.group_by(lambda key, value: key, key=str).windowed_by(WINDOWS).count(name="counts")
    counted.to_stream().map(lambda key, n: (key.key, n), key=str, value=int).to("out")
    streams = log.start(app)
    try:
        eventually(lambda: streams.metrics.total("lagging-tasks-given-up") == PARTITIONS)
    finally:
        goes_on.set()
    assert "orders-0" in caplog.text
    caught_up(streams)
