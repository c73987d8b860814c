"""What operators with a store ask of their task: the record context in force, and memory over restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pystreams.dsl.operators.aggregate import Aggregate
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.functions import UserFunction
from pystreams.ids import TaskId
from pystreams.record import ContextCell
from pystreams.state.cache.thread_cache import ThreadCache
from pystreams.state.stores.factory import Stores
from pystreams.state.task_stores import TaskStores
from pystreams.stream_time import Observed
from pystreams.windowed import Windowed

ZERO = UserFunction(lambda: 0, False, "zero")
ONE_MORE = UserFunction(lambda count, value: count + 1, False, "one more")


class Environment:
    """A task of one operator. ``forwarded`` has what it forwarded, with the record context at that moment."""

    node_name = "step"

    def __init__(self, *, cached: bool) -> None:
        self.cell = ContextCell()
        self.saved: dict[str, Callable[[], int]] = {}
        self.loaded: dict[str, int] = {}
        self.drops: list[Any] = []
        self.forwarded: list[tuple[Any, ...]] = []
        self.state = TaskStores.open(
            None,
            [
                Stores.timestamped_key_value_store("counts", str, int, cached=cached),
                Stores.timestamped_window_store("windows", str, int, size=10, retention=10, cached=cached),
            ],
            task_id=TaskId(0, 0),
            cell=self.cell,
            log_of=lambda store: None,
            topic_of=str,
        )
        self.state.attach(ThreadCache(1_000_000))

    def forward(self, key: Any, new: Any, old: Any, timestamp: int, headers: Any, is_latest: bool) -> None:
        self.forwarded.append((key, new, old, timestamp, headers, self.cell.record))

    def store(self, name: str) -> Any:
        return self.state.stores[name]

    def drop(self, reason: str) -> None:
        self.drops.append(reason)

    def drop_late(self, key: Any, value: Any, stream_time: int, grace_ms: int) -> None:
        self.drops.append((key, value, stream_time, grace_ms))

    def failed(self, error: Exception, key: Any, value: Any) -> None:
        raise error

    def observed(self, on_move: Callable[[], None] | None = None) -> Observed:
        time = self.cell.time.of_step(0)
        time.go_on(self.load_state("stream_time", -1))
        self.save_state("stream_time", lambda: time.ms)
        return time

    def load_state(self, name: str, default: int) -> int:
        return self.loaded.get(name, default)

    def save_state(self, name: str, read: Callable[[], int]) -> None:
        self.saved[name] = read


@pytest.fixture
def uncached() -> Iterator[Environment]:
    environment = Environment(cached=False)
    yield environment
    environment.state.close()


@pytest.fixture
def cached() -> Iterator[Environment]:
    environment = Environment(cached=True)
    yield environment
    environment.state.close()


def windows(environment: Environment) -> Callable[..., None]:
    operation = WindowAggregate("windows", 10, 10, 0, ZERO, ONE_MORE)
    return operation.open(environment).process


def test_the_context_has_the_forwarded_timestamp_and_is_restored(uncached: Environment) -> None:
    process = Aggregate("counts", ZERO, ONE_MORE).open(uncached).process
    uncached.cell.record = ("in", 0, 0, 9, ())
    process("a", "x", 9, ())
    late = ("in", 0, 1, 5, (("h", b"1"),))
    uncached.cell.record = late
    process("a", "x", 5, late[4])
    assert uncached.forwarded == [
        ("a", 1, None, 9, (), ("in", 0, 0, 9, ())),
        ("a", 2, None, 9, late[4], ("in", 0, 1, 9, late[4])),
    ]
    assert uncached.cell.record is late


def test_a_flush_forwards_under_the_context_of_the_last_update(cached: Environment) -> None:
    process = Aggregate("counts", ZERO, ONE_MORE, send_old_values=True).open(cached).process
    for offset, timestamp in enumerate((9, 5)):
        cached.cell.record = ("in", 0, offset, timestamp, ())
        process("a", "x", timestamp, ())
    in_force = cached.cell.record = ("in", 0, 7, 50, ())
    assert cached.forwarded == []
    cached.state.flush_caches()
    assert cached.forwarded == [("a", 2, None, 9, (), ("in", 0, 1, 9, ()))]
    assert cached.cell.record is in_force


def test_flushed_windows_come_with_their_bounds(cached: Environment) -> None:
    process = windows(cached)
    cached.cell.record = ("in", 0, 0, 12, ())
    process("a", "x", 12, ())
    cached.state.flush_caches()
    assert [forwarded[:2] for forwarded in cached.forwarded] == [(Windowed("a", 10, 20), 1)]


def test_the_time_that_closes_windows_survives_a_restart(uncached: Environment) -> None:
    process = windows(uncached)
    process("a", "x", 35, ())
    remembered = {name: read() for name, read in uncached.saved.items()}
    assert remembered == {"stream_time": 35}
    uncached.loaded = remembered
    after_restart = windows(uncached)
    after_restart("a", "x", 29, ())
    after_restart("a", "x", 30, ())
    assert [forwarded[:2] for forwarded in uncached.forwarded] == [
        (Windowed("a", 30, 40), 1),
        (Windowed("a", 30, 40), 2),
    ]
    assert uncached.drops == [("a", "x", 35, 6)]
