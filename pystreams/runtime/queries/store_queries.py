"""Access to the stores of the tasks that run in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Generic, NamedTuple, TypeVar

from pystreams.errors import StateError
from pystreams.nearest import not_among
from pystreams.runtime.queries.placing import Found, Placing
from pystreams.runtime.tasks.task_manager import TaskManager
from pystreams.runtime.threads.stream_thread import StreamThread

R = TypeVar("R")

_ANSWER_TIMEOUT_S = 30.0


class _Answers(NamedTuple, Generic[R]):
    """The results by partition, and where the store's partitions are."""

    results: dict[int, R]
    found: Found


class LocalStore:
    """The part of a store in this process: the partitions whose tasks run here (see ``partitions``). The tasks' own
    threads read between two records, so a read sees complete updates, including cached ones, and waits for the threads'
    current round (tens of milliseconds; of an idle thread a few). Headers are shown if the store was requested with
    headers.

    A read of one key raises ``StateError`` if the key may be in another process, and never reports it as absent; the
    error names the partition and its owner. Reads of many keys cover the partitions in this process. Every method
    raises ``StateError`` if no running task of this process has the store, as during a rebalance, and if stores of its
    kind do not have the method.
    """

    def __init__(
        self,
        name: str,
        threads: Callable[[], Sequence[StreamThread]],
        placing: Placing | None,
        *,
        headers: bool = False,
    ) -> None:
        """``placing`` None: this process has all of the store."""
        self._name = name
        self._threads = threads
        self._placing = placing
        self._headers = headers

    # Of one key

    def get(self, key: Any) -> Any:
        """The value of a key, None if there is none in any process."""
        found = self._of_key(key, lambda store: _method(store, "get")(key))
        return found[0] if found else None

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[Any, Any]]:
        """Of a window store: start and value of the key's windows that start in the time range, both ends included."""
        found = self._of_key(key, lambda store: _read(_method(store, "fetch")(key, from_ms, to_ms)))
        return [entry for entries in found for entry in entries]

    def find_sessions(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> list[tuple[Any, Any]]:
        """Of a session store: the key's sessions, with their values, that end at the earliest end or later and start at
        the latest start or earlier."""
        found = self._of_key(
            key, lambda store: _read(_method(store, "find_sessions")(key, earliest_end_ms, latest_start_ms))
        )
        return [entry for entries in found for entry in entries]

    # Of the partitions that are here

    @property
    def partitions(self) -> list[int]:
        """The partitions of the store that reads cover now; empty for a global store, which is complete."""
        return sorted(self._ask(lambda _: None).found.here)

    def all(self) -> list[tuple[Any, Any]]:
        """All entries in this process, task by task, in the byte order of their keys."""
        return [
            entry for entries in self.query(lambda store: _read(_method(store, "all")())) for entry in entries
        ]

    def range(self, lower: Any, upper: Any) -> list[tuple[Any, Any]]:
        """The entries in this process from key ``lower`` to key ``upper``, both included; None: no bound."""
        found = self.query(lambda store: _read(_method(store, "range")(lower, upper)))
        return [entry for entries in found for entry in entries]

    def approximate_count(self) -> int:
        """The approximate number of entries in this process."""
        return sum(self.query(lambda store: int(_method(store, "approximate_count")())))

    def query(self, read: Callable[[Any], R]) -> list[R]:
        """The results of ``read`` for the store of each task that runs here. ``read`` runs in the stream threads: it
        must neither write nor take long, and must not keep iterators."""
        answers = self._ask(read)
        if not answers.results and self._placing is not None:
            raise self._placing.not_here(answers.found)
        return list(answers.results.values())

    def _of_key(self, key: Any, read: Callable[[Any], Any]) -> list[Any]:
        """The results for a key. Raises ``StateError`` if the key is not in this process, and may be in another one."""
        answers = self._ask(read)
        found = [result for result in answers.results.values() if result is not None and result != []]
        if not found and self._placing is not None:
            self._placing.require_absent(key, answers.found)
        return found

    def _ask(self, read: Callable[[Any], R]) -> _Answers[R]:
        assert self._placing is not None, "GlobalLocalStore reads global stores"
        subtopology = self._placing.subtopology

        def of_thread(tasks: TaskManager) -> tuple[dict[int, R], set[int]]:
            results = {
                task.task_id.partition: read(self._shown(task.stores[self._name]))
                for task in tasks.running
                if task.task_id.subtopology == subtopology
            }
            given = {task.partition for task in tasks.task_ids() if task.subtopology == subtopology}
            return results, given

        threads = self._threads()
        asked = [thread.call(of_thread) for thread in threads]
        results: dict[int, R] = {}
        given: set[int] = set()
        try:
            for answer in asked:
                of_running, of_all = answer.result(_ANSWER_TIMEOUT_S)
                results |= of_running
                given |= of_all
        except FutureTimeoutError as error:
            raise StateError(
                f"store {self._name} could not be read",
                why=f"a stream thread has been busy for {_ANSWER_TIMEOUT_S:g} s",
                hint="a function of the application is slow, or blocks",
            ) from error
        owners: dict[int, str] = {}
        for thread in threads:
            owners |= thread.owners_of(subtopology)
        return _Answers(results, Found(results.keys(), given - results.keys(), owners))

    def _shown(self, store: Any) -> Any:
        return store if self._headers else store.without_headers()


def _read(entries: Any) -> list[tuple[Any, Any]]:
    with entries:
        return list(entries)


def _method(store: Any, name: str) -> Callable[..., Any]:
    """A method of the store. Raises ``StateError`` if its kind does not have it."""
    method: Callable[..., Any] | None = getattr(store, name, None)
    if method is not None:
        return method
    has = [one for one in (*_READS, "query") if one == "query" or hasattr(store, one)]
    kind = store.spec.kind.replace("_", "-")
    raise StateError(
        f"store {store.name} does not have {name}: it is a {kind} store",
        **not_among(name, has, "its query methods are"),
    )


_READS = ("get", "all", "range", "fetch", "find_sessions", "approximate_count")
