"""T12: a process that is asked for a key answers with its value, with None if no process has the key, or with an error
that names the owner of its partition: "elsewhere" is never taken for "absent". All processes together have each key
once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pystreams import SessionWindows, TimeWindows
from pystreams.app import App
from pystreams.errors import StateError
from pystreams.partitioning import partition_for_key
from pystreams.runtime.streams import Streams
from pystreams.runtime.threads.thread_state import ThreadState
from tests.live.support import TIMEOUT_S, Log, eventually, running

PARTITIONS = 4
KEYS = [f"k{number}" for number in range(12)]
ABSENT = [f"absent{number}" for number in range(12)]


def partition(key: str) -> int:
    return partition_for_key(key.encode(), PARTITIONS)


def regrouped(log: Log, process: str, **settings: Any) -> App:
    """Keys are those that the application has spread itself."""
    app = log.app("queried", state_dir=log.path / process, **settings)
    app.stream("in", key=str, value=int).group_by(lambda _, value: f"k{value}", key=str).count(name="counts")
    return app


def as_they_come(log: Log, process: str, **settings: Any) -> App:
    """Keys are where whoever wrote the topic has put them."""
    app = log.app("queried", state_dir=log.path / process, **settings)
    app.table("in", key=str, value=int, name="latest")
    return app


def write(log: Log) -> None:
    log.create("in", partitions=PARTITIONS)
    log.write("in", [(key, number, 1_000 + number) for number, key in enumerate(KEYS)])


def shared(log: Log, program: Callable[..., App], store: str) -> list[Streams]:
    """Two processes that have two partitions each, and have processed everything."""
    clients = [log.start(program(log, process)) for process in ("p1", "p2")]
    for streams in clients:
        running(streams)
    eventually(lambda: [len(streams.store(store).partitions) for streams in clients] == [2, 2])
    eventually(lambda: all(streams.caught_up() for streams in clients))
    return clients


def refusal(streams: Streams, store: str, key: str, **options: Any) -> str:
    with pytest.raises(StateError) as refused:
        streams.store(store, **options).get(key)
    return str(refused.value)


def names(clients: Sequence[Streams]) -> list[str]:
    """The only thread's of each client."""
    return [streams.metadata_for_local_threads()[0].name for streams in clients]


def test_alone_a_process_knows_what_is_absent(log: Log) -> None:
    write(log)
    streams = log.start(as_they_come(log, "p1"))
    eventually(streams.caught_up)
    store = streams.store("latest")
    assert store.partitions == [0, 1, 2, 3]
    assert [store.get(key).value for key in KEYS] == list(range(12))
    assert [store.get(key) for key in ABSENT] == [None] * 12


@pytest.mark.both_logs
def test_a_key_of_another_process_is_never_absent_and_its_owner_is_named(log: Log) -> None:
    write(log)
    clients = shared(log, regrouped, "counts")
    threads = names(clients)
    for client, streams in enumerate(clients):
        store = streams.store("counts")
        here = store.partitions
        for key in KEYS:
            if partition(key) in here:
                assert store.get(key).value == 1
            else:
                told = refusal(streams, "counts", key)
                assert f"partition {partition(key)} is assigned to {threads[1 - client]}" in told
        for key in ABSENT:
            if partition(key) in here:
                assert store.get(key) is None
            else:
                assert f"partition {partition(key)} is assigned to" in refusal(streams, "counts", key)
    everything = [entry for streams in clients for entry in streams.store("counts").all()]
    assert sorted(key for key, _ in everything) == sorted(KEYS)


def test_a_key_with_fields_is_found_however_its_fields_are_ordered(log: Log) -> None:
    def program(log: Log, process: str) -> App:
        app = log.app("queried", state_dir=log.path / process)
        stream = app.stream("in", key=str, value=int)
        stream.group_by(lambda _, value: {"n": value, "a": 0}, key=dict[str, int]).count(name="counts")
        return app

    write(log)
    clients = shared(log, program, "counts")
    for number in range(len(KEYS)):
        for key in ({"n": number, "a": 0}, {"a": 0, "n": number}):
            counts = []
            for streams in clients:
                try:
                    counts.append(streams.store("counts").get(key).value)
                except StateError:
                    continue
            assert counts == [1]


@pytest.mark.both_logs
def test_where_others_have_spread_the_keys_a_missing_one_may_be_anywhere_until_somebody_says_how(
    log: Log,
) -> None:
    log.create("in", partitions=PARTITIONS)
    # Not where the default partitioner would put it.
    stray = next(key for key in KEYS if partition(key) != 0)
    log.write("in", [(stray, 1, 1_000)], partition=0)
    clients = shared(log, as_they_come, "latest")
    threads = names(clients)
    for client, streams in enumerate(clients):
        here = streams.store("latest").partitions
        if 0 in here:
            assert streams.store("latest").get(stray).value == 1
        else:
            told = refusal(streams, "latest", stray)
            assert f"partition 0 is assigned to {threads[1 - client]}" in told
            assert f"the default partitioner would give partition {partition(stray)}" in told
        for key in ABSENT:
            assert "another process may have it" in refusal(streams, "latest", key)
            if partition(key) in here:
                assert streams.store("latest", partitioner=partition_for_key).get(key) is None
            else:
                told = refusal(streams, "latest", key, partitioner=partition_for_key)
                assert f"partition {partition(key)} is assigned to {threads[1 - client]}" in told


def test_windows_and_sessions_of_a_key_are_not_absent_either(log: Log) -> None:
    def program(log: Log, process: str) -> App:
        settings = {"window_changelog_retention_ms": -1}
        app = log.app("queried", state_dir=log.path / process, **settings)
        grouped = app.stream("in", key=str, value=int).group_by(lambda _, value: f"k{value}", key=str)
        grouped.windowed_by(TimeWindows.tumbling(1_000, grace=0)).count(name="windows")
        grouped.windowed_by(SessionWindows.of(10, grace=0)).count(name="sessions")
        return app

    write(log)
    clients = shared(log, program, "windows")
    for streams in clients:
        here = streams.store("windows").partitions
        for key in KEYS:
            if partition(key) in here:
                assert [len(found) for found in found_of(streams, key)] == [1, 1]
            else:
                with pytest.raises(StateError, match=f"partition {partition(key)} is assigned to"):
                    streams.store("windows").fetch(key, 0, 5_000)
                with pytest.raises(StateError, match=f"partition {partition(key)} is assigned to"):
                    streams.store("sessions").find_sessions(key, 0, 5_000)


def found_of(streams: Streams, key: str) -> list[list[Any]]:
    return [
        streams.store("windows").fetch(key, 0, 5_000),
        streams.store("sessions").find_sessions(key, 0, 5_000),
    ]


def test_a_client_that_does_not_run_says_so(log: Log) -> None:
    log.create("in", partitions=PARTITIONS)
    streams = Streams(regrouped(log, "p1"), broker=log.broker)
    assert "is not in this process now" in refusal(streams, "counts", "k1")


def test_a_client_that_was_closed_says_so(log: Log) -> None:
    write(log)
    streams = log.start(regrouped(log, "p1"))
    eventually(streams.caught_up)
    store = streams.store("counts")
    assert store.get("k1").value == 1
    assert streams.close(1000 * TIMEOUT_S)
    for read in (lambda: store.get("k1"), store.all, lambda: streams.store("counts").partitions):
        with pytest.raises(StateError) as refused:
            read()
        assert str(refused.value).splitlines() == [
            "stores cannot be read through this client any more",
            "  why: it was closed",
            "  next: start a new Streams of the same topology",
        ]


def test_what_a_store_cannot_be_asked_is_reported_with_what_it_can(log: Log) -> None:
    write(log)
    streams = log.start(regrouped(log, "p1"))
    eventually(streams.caught_up)
    store = streams.store("counts")
    for name, read in (("fetch", store.fetch), ("find_sessions", store.find_sessions)):
        with pytest.raises(StateError, match=f"counts does not have {name}: it is a timestamped-key") as told:
            read("k1", 0, 1)
        assert "all, approximate_count, get, prefix_scan, query, range, reverse_all, reverse_range" in str(
            told.value
        )


def test_who_asks_again_and_again_does_not_wait_for_an_idle_thread_each_time(log: Log) -> None:
    write(log)
    # A thread without records waits so long for the next ones.
    streams = log.start(as_they_come(log, "alone", poll_ms=5_000))
    running(streams)
    store, end = streams.store("latest"), time.monotonic() + 120
    for number in range(500):
        assert store.get(KEYS[number % len(KEYS)]).value == number % len(KEYS)
        assert time.monotonic() < end, f"only {number} answers"


def test_a_process_knows_where_all_keys_are_whichever_of_its_threads_was_told(log: Log) -> None:
    """Also after this thread has ended, and threads have been added."""
    write(log)
    settings = {"num_stream_threads": 2}
    one, two = (log.start(as_they_come(log, process, **settings)) for process in ("p1", "p2"))

    def known(streams: Streams) -> dict[int, str]:
        return {p: place.active.thread for p, place in streams.endpoints("latest").items() if place.active}

    def run() -> dict[int, str]:
        """The thread that runs each partition."""
        threads = [thread for client in (one, two) for thread in client.metadata_for_local_threads()]
        return {task.task_id.partition: thread.name for thread in threads for task in thread.tasks}

    def states(streams: Streams) -> list[ThreadState]:
        return [thread.state for thread in streams.metadata_for_local_threads()]

    eventually(lambda: set(run()) == set(range(PARTITIONS)) and len({*run().values()}) == PARTITIONS)
    eventually(lambda: known(one) == known(two) == run(), "both know all four threads")
    for _ in range(2):  # either of them may be the one that was told
        one.add_stream_thread()
        eventually(lambda: states(one) == [ThreadState.RUNNING] * 3, "the added thread is a member")
        first = one._threads[0]
        first.stop(leave=True)
        eventually(lambda first=first: first not in one._threads, "the first thread has ended")
        assert set(known(one)) == set(range(PARTITIONS))
        eventually(lambda: known(one) == known(two) == run(), "both know the new places")
