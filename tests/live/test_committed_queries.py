"""Committed reads wait for no thread, say which input they include, wait for a position if asked to, and come from
standbys only when these may answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from pystreams.app import App
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.runtime.queries.position import Position
from pystreams.runtime.streams import Streams
from tests.live.support import Log, caught_up, eventually, running

PARTITIONS = 2
KEYS = [f"k{number}" for number in range(20)]
STUCK = -1


def table(log: Log, process: str = "p1", step: Callable[[int], int] | None = None, **settings: Any) -> App:
    app = log.app("queried", state_dir=log.path / process, **settings)
    stream = app.stream("in", key=str, value=int)
    (stream if step is None else stream.map_values(step, value=int)).to_table(name="latest")
    return app


def write(log: Log, value: int = 1, keys: list[str] = KEYS) -> Position:
    """The position after what is written."""
    log.write("in", [(key, value, 1_000) for key in keys])
    return Position(log.admin.end_offsets(log.partitions("in")))


def values(streams: Streams, **demands: Any) -> list[Any]:
    store = streams.store("latest", **demands)
    return [None if (found := store.get(key)) is None else found.value for key in KEYS]


def test_a_store_shows_itself_without_a_read(log: Log) -> None:
    log.create("in", partitions=PARTITIONS)
    streams = log.start(table(log))
    caught_up(streams)
    store = streams.store("latest")
    assert repr(store) == "Store latest: the partitions of this process"
    assert store._repr_html_() == "<p>Store latest: the partitions of this process</p>"
    assert streams.close(30_000)
    assert repr(store).startswith("Store latest: ")


def test_a_committed_read_does_not_wait_for_a_thread_that_is_busy(log: Log) -> None:
    log.create("in", partitions=PARTITIONS)
    stuck, free = threading.Event(), threading.Event()

    def step(value: int) -> int:
        if value == STUCK:
            stuck.set()
            assert free.wait(300)
        return value

    write(log)
    streams = log.start(table(log, step=step))
    caught_up(streams)
    try:
        log.write("in", [(KEYS[0], STUCK, 1_000)])
        assert stuck.wait(120)
        assert values(streams, freshness="committed") == [1] * len(KEYS)
        assert sorted(dict(streams.store("latest", freshness="committed").all())) == sorted(KEYS)
        with pytest.raises(StateError, match="freshness='committed' does not wait"):
            streams.store("latest", timeout=50).get(KEYS[0])
    finally:
        free.set()


@pytest.mark.both_logs
def test_who_demands_the_position_of_its_records_reads_its_writes(log: Log) -> None:
    log.create("in", partitions=PARTITIONS)
    # Nothing commits but on demand.
    streams = log.start(table(log, commit_interval_ms=3_600_000))
    running(streams)
    for value in range(1, 6):
        written = write(log, value)
        demands: dict[str, Any] = {"at_least": written, "timeout": 120_000}
        assert values(streams, freshness="committed" if value % 2 else "latest", **demands) == [value] * len(
            KEYS
        )
    answers = streams.store("latest", freshness="committed").ask(lambda store: store.approximate_count())
    assert [answer.partition for answer in answers] == [0, 1]
    for answer in answers:
        assert set(answer.position) == {TopicPartition("in", answer.partition)}
        assert not answer.standby
        assert answer.lag == 0


@pytest.mark.parametrize("freshness", ["latest", "committed"])
def test_a_position_that_is_not_reached_is_an_error_that_says_how_much_is_missing(
    log: Log, freshness: str
) -> None:
    log.create("in")
    end = write(log)[TopicPartition("in", 0)]
    streams = log.start(table(log))
    caught_up(streams)
    beyond = Position.containing([("in", 0, end + 6), ("in", 0, end)])
    store = streams.store("latest", freshness=freshness, at_least=beyond, timeout=5_000)
    with pytest.raises(StateError, match=r"has not reached the position in time(.|\n)*7 offsets of in-0"):
        store.get(KEYS[0])
    with pytest.raises(StateError, match="7 offsets of in-0"):
        store.all()
    elsewhere = streams.store("latest", at_least=Position.containing([("other", 0, 1)]))
    with pytest.raises(StateError, match=r"cannot be asked for a position in other(.|\n)*its tasks read in"):
        elsewhere.get(KEYS[0])


def test_what_is_not_a_demand_is_refused(log: Log) -> None:
    log.create("in")
    streams = Streams(table(log), broker=log.broker)
    with pytest.raises(StateError, match=r"'comitted' is not a freshness(.|\n)*committed"):
        streams.store("latest", freshness="comitted")  # type: ignore[arg-type]
    with pytest.raises(StateError, match="standbys cannot be asked for the latest state"):
        streams.store("latest", standbys=True)


@pytest.mark.both_logs
def test_a_standby_answers_only_when_asked_to_and_every_member_knows_all_endpoints(log: Log) -> None:
    log.create("in", partitions=PARTITIONS)
    write(log)
    hosts = ["127.0.0.1:7001", "127.0.0.1:7002"]
    clients = [
        log.start(table(log, f"p{n}", application_server=host, num_standby_replicas=1))
        for n, host in enumerate(hosts)
    ]
    for streams in clients:
        running(streams)
    eventually(lambda: [len(streams.store("latest").partitions) for streams in clients] == [1, 1])
    eventually(lambda: all(streams.caught_up() for streams in clients))
    eventually(
        lambda: all(lag == 0 for streams in clients for lag in lags(streams)), "standbys have caught up"
    )
    for client, streams in enumerate(clients):
        here, store = streams.store("latest").partitions, streams.store("latest", freshness="committed")
        with pytest.raises(StateError, match="another process may have it"):
            [store.get(key) for key in KEYS]
        both = streams.store("latest", freshness="committed", standbys=True)
        # A standby may have looked at the end of the changelog before the last commit: then its lag says 0 too early.
        eventually(
            lambda both=both: [found.value for key in KEYS if (found := both.get(key))] == [1] * len(KEYS)
        )
        assert {answer.partition: answer.standby for answer in both.ask(lambda _: None)} == {
            partition: partition not in here for partition in range(PARTITIONS)
        }
        places = streams.endpoints("latest")
        assert {partition: place.active.endpoint for partition, place in places.items() if place.active} == {
            partition: hosts[client if partition in here else 1 - client] for partition in range(PARTITIONS)
        }
        assert {
            partition: [one.endpoint for one in place.standbys] for partition, place in places.items()
        } == {
            partition: [hosts[1 - client if partition in here else client]] for partition in range(PARTITIONS)
        }


def lags(streams: Streams) -> list[int | None]:
    """Of both tasks: the one that runs here lags 0 records."""
    store = streams.store("latest", freshness="committed", standbys=True)
    found = [answer.lag for answer in store.ask(lambda _: None)]
    return found if len(found) == PARTITIONS else [None]


def test_the_endpoint_may_be_set_until_the_client_starts(log: Log) -> None:
    log.create("in")
    streams = Streams(table(log), broker=log.broker)
    assert streams.endpoints("latest") == {}
    streams.set_application_server("127.0.0.1:7003")
    assert streams.config.application_server == "127.0.0.1:7003"
    with streams_running(streams):
        eventually(lambda: (found := streams.endpoints("latest").get(0)) and found.active)
        active = streams.endpoints("latest")[0].active
        assert active is not None
        assert active.endpoint == "127.0.0.1:7003"
        assert active.thread == streams.metadata_for_local_threads()[0].name
        with pytest.raises(
            StateError, match="set_application_server is for a client that has not been started"
        ):
            streams.set_application_server("127.0.0.1:7004")


class streams_running:  # noqa: N801 - used as a function
    """A client that runs within the block."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def __enter__(self) -> None:
        self._streams.start()
        running(self._streams)

    def __exit__(self, *_: object) -> None:
        self._streams.close()


def test_readers_survive_rebalances_and_the_end_of_the_client(log: Log) -> None:
    log.create("in", partitions=PARTITIONS)
    write(log)
    first = log.start(table(log, "p1"))
    caught_up(first)
    stop, failures, answered = threading.Event(), [], threading.Semaphore(0)

    def read() -> None:
        store = first.store("latest", freshness="committed", standbys=True)
        number = 0
        while not stop.is_set():
            number += 1
            try:
                found = store.get(KEYS[number % len(KEYS)])
                assert found is not None
                assert found.value >= 1
                store.all()
                answered.release()
            except StateError:
                continue  # The key is elsewhere now, or its task was closed just then.
            except BaseException as error:  # noqa: BLE001 - it is raised below
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for round_ in range(2, 5):
            second = log.start(table(log, f"p{round_}"))
            running(second)
            eventually(lambda second=second: len(second.store("latest").partitions) == 1)
            write(log, round_)
            assert second.close(120_000)
            eventually(lambda: len(first.store("latest").partitions) == PARTITIONS)
            assert answered.acquire(timeout=120)
        assert first.close(120_000)
    finally:
        stop.set()
        for reader in readers:
            reader.join(120)
    if failures:
        raise failures[0]


def test_two_keys_that_change_together_are_never_seen_apart(log: Log) -> None:
    """The records of one transaction are one commit: both keys are in one partition of the input."""
    log.create("in")
    streams = log.start(table(log))
    running(streams)
    store = streams.store("latest", freshness="committed")
    stop, failures, seen = threading.Event(), [], set()

    def read() -> None:
        try:
            while not stop.is_set():
                for answer in store.ask(lambda counts: [counts.get("left"), counts.get("right")]):
                    left, right = (None if found is None else found.value for found in answer.result)
                    # A commit ends between two records at most: right follows left.
                    assert left == right or left == (right or 0) + 1, (left, right)
                    offset = answer.position.get(TopicPartition("in", 0), 0)
                    assert (left or 0) <= offset
                    seen.add(right)
        except BaseException as error:  # noqa: BLE001 - it is raised below
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    value = 0
    while len(seen) < 10 and not failures and value < 10_000:
        value += 1
        log.write("in", [("left", value, value), ("right", value, value)])
    stop.set()
    reader.join(120)
    if failures:
        raise failures[0]
    assert len(seen) >= 10
