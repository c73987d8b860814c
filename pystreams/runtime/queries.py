"""Reading the stores of the tasks that run in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from pystreams.errors import StateError
from pystreams.runtime.stream_thread import StreamThread
from pystreams.runtime.task_manager import TaskManager

R = TypeVar("R")

_ANSWER_TIMEOUT_S = 30.0


class LocalStore:
    """A store as far as this process has it. Each read is done by the tasks' own threads between two records, so it
    sees whole updates, cached ones too, and waits for the threads' current round (tens of milliseconds). What the store
    keeps of headers is shown if it was asked for with them.

    Every method raises ``StateError`` if no running task of this process has the store, as during a rebalance.
    """

    def __init__(
        self, name: str, threads: Callable[[], Sequence[StreamThread]], *, headers: bool = False
    ) -> None:
        self._name = name
        self._threads = threads
        self._headers = headers

    def get(self, key: Any) -> Any:
        """The value of a key, None if there is none."""
        return next((value for value in self.query(lambda store: store.get(key)) if value is not None), None)

    def all(self) -> list[tuple[Any, Any]]:
        """All entries, task by task, each in the order of its keys' bytes."""
        return [entry for entries in self.query(lambda store: _read(store.all())) for entry in entries]

    def range(self, lower: Any, upper: Any) -> list[tuple[Any, Any]]:
        """The entries from key ``lower`` to key ``upper``, both included; None: without bound."""
        found = self.query(lambda store: _read(store.range(lower, upper)))
        return [entry for entries in found for entry in entries]

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[Any, Any]]:
        """Of a window store: start and value of the key's windows that start in the time range, both ends included."""
        found = self.query(lambda store: _read(store.fetch(key, from_ms, to_ms)))
        return [entry for entries in found for entry in entries]

    def find_sessions(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> list[tuple[Any, Any]]:
        """Of a session store: the key's sessions, with their values, that end at the earliest end or later and start at
        the latest start or earlier."""
        found = self.query(lambda store: _read(store.find_sessions(key, earliest_end_ms, latest_start_ms)))
        return [entry for entries in found for entry in entries]

    def approximate_count(self) -> int:
        """About how many entries there are."""
        return sum(self.query(lambda store: int(store.approximate_count())))

    def query(self, read: Callable[[Any], R]) -> list[R]:
        """What ``read`` gives for the store of each task. It runs in the stream threads: it must neither write nor take
        long, and must not keep iterators."""

        def of_thread(tasks: TaskManager) -> list[R]:
            stores = [task.state.stores.get(self._name) for task in tasks.running]
            return [read(self._shown(store)) for store in stores if store is not None]

        answers = [thread.call(of_thread) for thread in self._threads()]
        try:
            found = [result for answer in answers for result in answer.result(_ANSWER_TIMEOUT_S)]
        except FutureTimeoutError as error:
            raise StateError(
                f"store {self._name} could not be read",
                why=f"a stream thread has been busy for {_ANSWER_TIMEOUT_S:g} s",
                hint="a function of the application takes very long, or waits",
            ) from error
        if not found:
            raise StateError(
                f"store {self._name} is not in this process now",
                why="none of its tasks is running here: they are being restored, or belong to other members",
            )
        return found

    def _shown(self, store: Any) -> Any:
        return store if self._headers else store.without_headers()


def _read(entries: Any) -> list[tuple[Any, Any]]:
    with entries:
        return list(entries)
