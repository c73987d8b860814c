"""Trouble with broker, group or store costs time, never records: each error is answered as its action says."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pystreams.app import App
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.errors import (
    BrokerUnavailableError,
    DeliveryError,
    ProductionError,
    StateCorruptedError,
    StreamsError,
    TaskMigratedError,
)
from pystreams.ids import TaskId
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.streams import Streams
from pystreams.serde import serde_for
from pystreams.state.disk.directory import DirectoryLock
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually, processed, running

Fault = Callable[[str], None]


class FaultyClient:
    """Asks ``fault`` before each call of a client, with the call's name."""

    def __init__(self, inner: Any, fault: Fault) -> None:
        self._inner = inner
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self._fault(name)
            return method(*arguments, **options)

        return call


class FaultyBroker:
    """The embedded log with faulty admin clients, and faulty producers of threads."""

    def __init__(self, inner: EmbeddedBroker, fault: Fault) -> None:
        self._inner = inner
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def producer(self, client_id: str, *options: Any) -> Any:
        producer = self._inner.producer(client_id, *options)
        return FaultyClient(producer, self._fault) if client_id.endswith("-producer") else producer

    def admin(self) -> FaultyClient:
        return FaultyClient(self._inner.admin(), self._fault)


class Faults:
    """Raises ``error`` at some of the calls of one method: the ``at``-th and the ``times`` - 1 after it."""

    def __init__(self, method: str, error: StreamsError, *, at: int, times: int = 1) -> None:
        self.method = method
        self.error = error
        self.raised = 0
        self._calls = 0
        self._at = at
        self._times = times

    def __call__(self, method: str) -> None:
        if method == self.method:
            self._calls += 1
            if self._at <= self._calls < self._at + self._times:
                self.raised += 1
                raise self.error


AWAY = BrokerUnavailableError("the broker is away")
INPUT = [(f"k{i % 7}", i, i) for i in range(3_000)]
COUNTS = {f"k{i}": len(range(i, 3_000, 7)) for i in range(7)}


def slowly(_: int) -> None:
    """All records together take longer than many commit intervals."""
    time.sleep(0.0002)


def counting(log: Log, look: Callable[[int], None] = lambda value: None, **settings: Any) -> App:
    app = log.app("counting", **{"commit_interval_ms": 10, **settings})
    stream = app.stream("in", key=str, value=int).peek(look)
    stream.group_by_key().count(name="counts").to_stream().to("out")
    return app


@pytest.fixture(autouse=True)
def records(log: Log) -> None:
    log.create("in", "out", partitions=3)
    log.write("in", INPUT)


@pytest.fixture
def start(log: Log, request: pytest.FixtureRequest) -> Callable[..., Streams]:
    """Start an application on a faulty broker."""

    def start(app: App, fault: Fault) -> Streams:
        streams = Streams(app, broker=FaultyBroker(log.broker, fault))
        request.addfinalizer(lambda: streams.close(1000 * TIMEOUT_S))
        streams.start()
        return streams

    return start


@pytest.mark.parametrize(
    "faults",
    [
        Faults("commit", AWAY, at=1, times=3),
        Faults("send", AWAY, at=5),
        Faults("send_to_changelog", AWAY, at=5, times=2),
        Faults("commit", TaskMigratedError("another member has it"), at=2),
    ],
    ids=lambda faults: f"{type(faults.error).__name__} in {faults.method}",
)
def test_every_record_counts_once_in_spite_of(
    log: Log, start: Callable[..., Streams], faults: Faults
) -> None:
    streams = start(counting(log, slowly), faults)
    eventually(lambda: faults.raised and streams.caught_up(), "caught up in spite of it")
    assert log.table("out") == COUNTS
    assert streams.metrics.total("failed-stream-threads") == 0
    streams.close()


class OnceAfter:
    """Raises at the first call of a method once it is armed, and only then. Its restore listener arms it."""

    def __init__(self, method: str) -> None:
        self.armed = self.raised = False
        self._method = method

    def __call__(self, method: str) -> None:
        if method == self._method and self.armed and not self.raised:
            self.raised = True
            raise AWAY

    def on_restore_start(self, *_: object) -> None:
        """Not yet."""

    def on_batch_restored(self, *_: object) -> None:
        """Not yet."""

    def on_restore_end(self, *_: object) -> None:
        self.armed = True


def test_after_a_record_that_did_not_arrive_all_tasks_of_the_thread_go_back_to_their_last_commit(
    log: Log, start: Callable[..., Streams]
) -> None:
    """They share a commit. In Java the task of the record alone goes back."""
    read = serde_for(int).deserializer("in")
    task_of = {read(line.value): p for p in log.partitions("in") for line in log.lines(p).values()}
    times: Counter[int] = Counter()
    uncommitted: set[int] = set()
    lost: set[int] = set()

    def look(value: int) -> None:
        times[value] += 1
        uncommitted.add(value)

    def fail_once(method: str) -> None:
        if method == "commit":
            if not lost and {task_of[value] for value in uncommitted} == set(log.partitions("in")):
                lost.update(uncommitted)
                raise DeliveryError("it did not arrive")
            uncommitted.clear()

    streams = start(counting(log, look, commit_interval_ms=500), fail_once)
    eventually(lambda: lost and streams.caught_up(), "caught up in spite of it")
    assert {times[value] for value in lost} == {2}
    assert log.table("out") == COUNTS


def test_an_assignment_that_trouble_interrupts_is_carried_out_afterwards(
    log: Log, start: Callable[..., Streams]
) -> None:
    fault = OnceAfter("commit")
    one = start(counting(log, commit_interval_ms=600_000), fault)
    processed(one, len(INPUT))
    fault.armed = True
    two = log.start(counting(log, commit_interval_ms=600_000))

    def tasks() -> list[int]:
        return sorted(len(thread.tasks) for client in (one, two) for thread in client.progress().threads)

    eventually(lambda: fault.raised and tasks() == [1, 2], "a task has moved")
    for client in (one, two):
        running(client)
        client.close()
    assert log.table("out") == COUNTS


def test_a_task_that_trouble_keeps_from_starting_starts_afterwards(log: Log) -> None:
    fault = OnceAfter("beginning_offsets")
    streams = Streams(counting(log), broker=FaultyBroker(log.broker, fault))
    streams.set_restore_listener(fault)
    streams.start()
    try:
        eventually(lambda: fault.raised and streams.caught_up(), "caught up in spite of it")
    finally:
        streams.close()
    assert log.table("out") == COUNTS


def test_a_client_that_is_closed_after_it_lost_its_tasks_has_not_failed(
    log: Log, start: Callable[..., Streams]
) -> None:
    migrated = TaskMigratedError("another member has it")
    streams = start(counting(log, commit_interval_ms=600_000), Faults("commit", migrated, at=1))
    processed(streams, len(INPUT))
    streams.close()
    assert (streams.failure, streams.state) == (None, ClientState.NOT_RUNNING)
    caught_up(log.start(counting(log)))
    assert log.table("out") == COUNTS


def test_a_log_that_does_not_answer_when_asked_for_the_end_is_asked_again(log: Log) -> None:
    faults = Faults("group_offsets", AWAY, at=1, times=2)
    streams = Streams(counting(log), broker=FaultyBroker(log.broker, faults))
    streams.run(until_caught_up=True)
    assert faults.raised == 2
    assert log.table("out") == COUNTS


def test_a_broker_that_stays_away_ends_the_client_after_task_timeout_ms(
    log: Log, start: Callable[..., Streams]
) -> None:
    away = BrokerUnavailableError("the broker is away")
    streams = start(counting(log, task_timeout_ms=300), Faults("commit", away, at=1, times=10**9))
    eventually(lambda: streams.finished, "the end")
    assert streams.failure is away
    said = r"the broker is away\n  why: trouble has lasted for (\d+\.\d) s, and task_timeout_ms is 0\.3 s"
    lasted = re.fullmatch(said, str(away))
    assert lasted is not None, str(away)
    assert float(lasted[1]) >= 0.3


def test_trouble_that_takes_some_rounds_to_come_back_ends_the_client_too(
    log: Log, start: Callable[..., Streams]
) -> None:
    class Always:
        """The broker takes nothing; but that is only told some rounds later each time."""

        def __init__(self) -> None:
            self.sent = 0

        def __call__(self, method: str) -> None:
            self.sent += method == "send"
            if method == "commit" or (method == "send" and self.sent % 200 == 0):
                raise AWAY

    # Slow functions make short rounds.
    app = counting(
        log,
        lambda _: time.sleep(0.002),
        task_timeout_ms=1_500,
        statestore_cache_max_bytes=0,
        commit_interval_ms=600_000,
    )
    streams = start(app, Always())
    eventually(lambda: streams.finished, "the end")
    assert streams.failure is AWAY


def test_a_record_that_the_broker_refuses_ends_the_client(log: Log, start: Callable[..., Streams]) -> None:
    refused = ProductionError("too large")
    streams = start(counting(log, slowly), Faults("commit", refused, at=2))
    eventually(lambda: streams.finished, "the end")
    assert streams.failure is refused


def test_a_member_that_was_evicted_joins_again_and_nothing_counts_twice(log: Log) -> None:
    from contextlib import closing

    from pystreams.broker.embedded import groups
    from pystreams.broker.embedded.database import Database

    app = counting(log)
    streams = log.start(app)
    caught_up(streams)
    with closing(Database(log.path / "log.db")) as database, database.transaction():
        for member in log.admin.group_members("counting"):
            groups.remove_member(database, "counting", member)
    log.write("in", [("k0", 1, 1)])
    eventually(lambda: log.table("out")["k0"] == COUNTS["k0"] + 1, "goes on")
    caught_up(streams)
    assert log.table("out") == {**COUNTS, "k0": COUNTS["k0"] + 1}


def test_a_store_that_turns_out_corrupt_is_wiped_alone_and_the_task_goes_on(log: Log) -> None:
    raised: list[int] = []

    def look(value: int) -> None:
        if value == 2_500 and not raised:
            raised.append(value)
            raise StateCorruptedError("a block does not match its checksum")

    streams = log.start(counting(log, look))
    eventually(lambda: raised and streams.caught_up(), "caught up in spite of it")
    assert log.table("out") == COUNTS
    assert streams.metrics.total("failed-stream-threads") == 0


def test_a_task_whose_directory_is_taken_waits_until_it_is_free(log: Log) -> None:
    directory = log.path / "state" / "counting" / str(TaskId(0, 1))
    directory.mkdir(parents=True)
    lock = DirectoryLock(directory)
    streams = log.start(counting(log))

    def the_others_are_through() -> bool:
        tasks = [task for thread in streams.progress().threads for task in thread.tasks]
        return len(tasks) == 2 and all(task.lag == 0 for task in tasks)

    eventually(the_others_are_through, "the other tasks work meanwhile")
    assert streams.state is ClientState.REBALANCING
    lock.release()
    running(streams)
    caught_up(streams)
    assert log.table("out") == COUNTS


def test_much_uncommitted_state_forces_a_commit(log: Log) -> None:
    app = counting(
        log, commit_interval_ms=600_000, statestore_uncommitted_max_bytes=1, statestore_cache_max_bytes=0
    )
    log.start(app)
    eventually(lambda: log.table("out") == COUNTS, "commits long before the interval")


def test_a_close_whose_commit_fails_reports_it_and_loses_nothing(
    log: Log, start: Callable[..., Streams]
) -> None:
    full = ProductionError("the disk is full")
    streams = start(counting(log, commit_interval_ms=600_000), Faults("commit", full, at=1))
    running(streams)
    eventually(lambda: streams.progress().records >= len(INPUT), "all processed")
    streams.close()
    assert streams.failure is full
    assert log.read("out") == []
    caught_up(log.start(counting(log)))
    assert log.table("out") == COUNTS
