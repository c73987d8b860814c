"""The thread of global stores: its states, and its answers to errors, while it fills the stores and afterwards."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pystreams import App, Serde
from pystreams.clock import ManualClock
from pystreams.dsl.builder import build_topology
from pystreams.errors import (
    BrokerUnavailableError,
    OffsetOutOfRangeError,
    SchemaRegistryUnavailableError,
    StateCorruptedError,
    TopicError,
)
from pystreams.ids import TopicPartition
from pystreams.metrics import Metrics
from pystreams.record import RecordBatch
from pystreams.runtime.tasks.client_context import ClientContext
from pystreams.runtime.threads import global_thread
from pystreams.runtime.threads.global_thread import GlobalThread
from pystreams.runtime.threads.thread_state import GlobalThreadState
from pystreams.state.disk.directory import StateDirectory
from pystreams.state.disk.rocksdb_memory import shared_resources
from tests.live.support import eventually
from tests.unit.runtime.tasks.log_kit import MemoryConsumer, MemoryLog

PRICES = TopicPartition("prices", 0)
TIMEOUT_MS = 1_000
#: Every poll, and every question to the schema registry, takes this time.
STEP_MS = 100
#: So many of them take longer than ``task_timeout_ms``.
TOO_MANY = 2 * TIMEOUT_MS // STEP_MS
_WAIT_S = 20.0


class Consumer(MemoryConsumer):
    """Its polls take time, and raise what the test wants."""

    def __init__(self, world: World) -> None:
        super().__init__(world.log, "global")
        self._world = world

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        self._world.clock.advance_ms(STEP_MS)
        if self._world.errors:
            raise self._world.errors.pop()
        return super().poll(timeout_ms)

    def close(self) -> None:
        self._world.closing.append(self._world.thread.state)
        super().close()


class World:
    """A thread of global stores with real stores, over a log in memory."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.log = MemoryLog(transactional=True)
        self.directory = StateDirectory(folder, "app")
        #: What the next polls raise.
        self.errors: list[Exception] = []
        #: How many more times the schema registry does not answer.
        self.registry_away = 0
        #: The states in which the thread closed its consumer, and the failures that it reported.
        self.closing: list[GlobalThreadState] = []
        self.reported: list[BaseException] = []
        self.begin()

    def begin(self) -> None:
        """Make the thread, for the first time or after it has ended."""
        self.context = self._make_context()
        self.thread = GlobalThread("thread", self.context, self.reported.append)

    def _make_context(self) -> ClientContext:
        app = App("app", task_timeout_ms=TIMEOUT_MS)
        app.global_table("prices", key=str, value=Serde.of(str.encode, self._decode), name="prices")
        log: Any = SimpleNamespace(log_id="memory", consumer=lambda name, purpose: Consumer(self))
        admin: Any = self.log
        unused: Any = None
        worker: Any = SimpleNamespace(number=1)
        return ClientContext(
            built=build_topology(app, app.config),
            config=app.config,
            broker=log,
            admin=admin,
            clock=self.clock,
            metrics=Metrics(),
            directory=self.directory,
            cleanup=unused,
            hand_over=unused,
            in_use=unused,
            resources=shared_resources(),
            process_id="process",
            worker=worker,
            inputs={},
            partition_count=lambda topic: 1,
        )

    def _decode(self, value: bytes) -> str:
        if self.registry_away and threading.current_thread().name == self.thread.name:
            self.registry_away -= 1
            self.clock.advance_ms(STEP_MS)
            raise SchemaRegistryUnavailableError("the registry is away")
        return value.decode()

    def write(self, **rows: str) -> None:
        self.log.partitions[PRICES].extend((key.encode(), value.encode(), 0) for key, value in rows.items())

    def ready(self) -> bool:
        self.thread.start()
        return self.thread.wait_ready(_WAIT_S)

    def rows(self) -> dict[str, str]:
        return {key: row.value for key, row in self.context.global_stores["prices"].all()}

    def ends(self) -> None:
        self.thread.join()
        assert self.thread.state is GlobalThreadState.DEAD
        assert self.context.global_stores == {}

    def stop(self) -> None:
        self.thread.stop()
        self.ends()

    @property
    def on_disk(self) -> bool:
        return (self.directory.path / "global-1").exists()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(global_thread, "_PAUSE_S", 0.001)
    made = World(tmp_path)
    made.write(tea="3")
    yield made
    made.thread.stop()
    made.thread.join()


# States


def test_it_runs_once_the_stores_are_filled_and_closes_them_before_it_is_dead(world: World) -> None:
    assert world.thread.state is GlobalThreadState.CREATED
    assert world.ready()
    assert world.thread.state is GlobalThreadState.RUNNING
    assert world.rows() == {"tea": "3"}
    world.stop()
    assert world.closing == [GlobalThreadState.PENDING_SHUTDOWN]
    assert world.reported == []


def test_stopped_before_it_has_filled_the_stores_it_never_runs(world: World) -> None:
    world.registry_away = TOO_MANY
    world.thread.stop()
    assert world.ready()
    assert world.thread.state is not GlobalThreadState.RUNNING
    world.ends()
    assert world.thread.failure is None


def test_a_failure_while_it_fills_the_stores_is_raised_where_they_are_waited_for(world: World) -> None:
    world.errors = [TopicError("the topic is gone")]
    with pytest.raises(TopicError, match="gone"):
        world.ready()
    world.ends()
    assert world.reported == []


def test_a_failure_later_is_reported_and_leaves_the_stores_to_their_readers_until_it_is_stopped(
    world: World,
) -> None:
    assert world.ready()
    world.errors = [failure := TopicError("the topic is gone")]
    eventually(lambda: world.reported == [failure], "it is reported")
    assert world.thread.state is GlobalThreadState.RUNNING
    assert world.rows() == {"tea": "3"}
    world.stop()
    assert world.on_disk


def test_what_cannot_be_closed_does_not_keep_the_rest_open(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.ready()

    def break_off(self: object, *, wipe: bool) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(global_thread.GlobalState, "close", break_off)
        world.stop()
    assert world.closing == [GlobalThreadState.PENDING_SHUTDOWN]
    assert "the disk is full" in caplog.text


def test_each_step_has_a_round_of_its_own_so_that_many_of_them_are_not_taken_for_one_that_hangs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    def noted(of: Any, name: str) -> None:
        step = getattr(of, name)

        def note(*given: Any, **named: Any) -> Any:
            events.append(name)
            return step(*given, **named)

        monkeypatch.setattr(of, name, note)

    noted(world.thread._hangs, "begin_round")
    noted(world.context.broker, "consumer")
    noted(world.log, "beginning_offsets")
    noted(world.log, "end_offsets")
    noted(Consumer, "poll")
    noted(global_thread.GlobalState, "__init__")
    noted(global_thread.GlobalState, "add")
    noted(global_thread.GlobalState, "apply")
    assert world.ready()
    world.stop()
    assert len(set(events)) == 8, "all of them"
    for before, step in itertools.pairwise(events):
        assert "begin_round" in (before, step), f"{step} comes in the same round as {before}"


def test_a_thread_of_the_watch_that_cannot_be_started_is_an_error_like_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(world.thread._hangs, "start", refuse)
    world.thread.start()
    with pytest.raises(RuntimeError, match="can't start new thread"):
        assert world.thread.wait_ready(_WAIT_S), "it waits for ever"
    world.ends()


# Answers


def test_a_log_that_does_not_answer_is_asked_again_for_as_long_as_it_takes(world: World) -> None:
    assert world.ready()
    world.log.faults["global poll"] = TOO_MANY
    eventually(lambda: world.log.faults["global poll"] == 0, "the log answers again")
    world.write(milk="1")
    eventually(lambda: world.rows() == {"tea": "3", "milk": "1"}, "the record is read")
    assert world.reported == []


def test_but_the_start_waits_for_task_timeout_ms_only(world: World) -> None:
    world.log.faults["global poll"] = TOO_MANY
    with pytest.raises(BrokerUnavailableError, match="could not be read to their end"):
        world.ready()
    world.ends()
    assert world.on_disk


@pytest.mark.parametrize("failures", [1, TIMEOUT_MS // STEP_MS - 1])
def test_a_schema_registry_that_is_away_for_a_time_loses_no_record(world: World, failures: int) -> None:
    world.registry_away = failures
    assert world.ready()
    # Its next absence is another one: it has the whole time again.
    world.registry_away = failures
    world.write(milk="1")
    eventually(lambda: world.rows() == {"tea": "3", "milk": "1"}, "the registry is back")
    assert world.registry_away == 0
    assert world.reported == []


def test_a_schema_registry_that_stays_away_for_task_timeout_ms_ends_it(world: World) -> None:
    assert world.ready()
    world.registry_away = TOO_MANY
    world.write(milk="1")
    eventually(lambda: world.reported, "it is reported")
    assert isinstance(world.reported[0], SchemaRegistryUnavailableError)
    assert world.registry_away > 0
    world.stop()
    world.registry_away = 0
    world.begin()
    assert world.ready()
    assert world.rows() == {"tea": "3", "milk": "1"}


def test_while_it_waits_for_a_schema_registry_it_can_be_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_thread, "_PAUSE_S", 3_600)
    world.registry_away = TOO_MANY
    world.thread.start()
    eventually(lambda: world.registry_away < TOO_MANY, "the registry is asked")
    world.stop()
    assert world.thread.failure is None


def test_stores_that_do_not_fit_their_topic_are_deleted_and_read_anew(world: World) -> None:
    assert world.ready()
    world.stop()
    world.log.partitions[PRICES].clear()
    world.begin()
    assert world.ready()
    assert world.rows() == {}


def test_records_lost_before_they_were_read_end_it_and_the_stores_are_deleted(world: World) -> None:
    assert world.ready()
    world.errors = [OffsetOutOfRangeError("offset 1 is not in the log")]
    eventually(lambda: world.reported, "it is reported")
    assert isinstance(world.reported[0], StateCorruptedError)
    assert world.rows() == {"tea": "3"}
    world.stop()
    assert not world.on_disk
    world.begin()
    assert world.ready()
    assert world.rows() == {"tea": "3"}


def test_an_error_while_records_are_applied_is_not_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of them have been applied already."""
    assert world.ready()
    applied = threading.Event()

    def fail(self: object) -> None:
        assert not applied.is_set()
        applied.set()
        raise SchemaRegistryUnavailableError("a store asked for a schema")

    monkeypatch.setattr(global_thread.GlobalState, "apply", fail)
    world.write(milk="1")
    eventually(lambda: world.reported, "it is reported")
    assert isinstance(world.reported[0], SchemaRegistryUnavailableError)
