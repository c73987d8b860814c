"""Reading the stores of the tasks that run in this process."""

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
    """What was read, by partition, and where the store's partitions are."""

    results: dict[int, R]
    found: Found


class LocalStore:
    """A store as far as this process has it: of the partitions whose tasks run here, which ``partitions`` tells. Each
    read is done by the tasks' own threads between two records, so it sees whole updates, cached ones too, and waits for
    the threads' current round (tens of milliseconds). What the store keeps of headers is shown if it was asked for with
    them.

    Reads of one key never take "elsewhere" for "absent": they raise ``StateError``, which names the partition and who
    has it, unless the key's partition is here. Reads of many keys cover what is here. Every method raises
    ``StateError`` if no running task of this process has the store, as during a rebalance, and if stores of its kind do
    not have the method.
    """

    def __init__(
        self,
        name: str,
        threads: Callable[[], Sequence[StreamThread]],
        placing: Placing | None,
        *,
        headers: bool = False,
    ) -> None:
        """``placing`` None: this process has the whole of the store."""
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
        """The partitions of the store that reads cover now; a global store has none, and is whole."""
        return sorted(self._ask(lambda _: None).found.here)

    def all(self) -> list[tuple[Any, Any]]:
        """All entries that are here, task by task, each in the order of its keys' bytes."""
        return [
            entry for entries in self.query(lambda store: _read(_method(store, "all")())) for entry in entries
        ]

    def range(self, lower: Any, upper: Any) -> list[tuple[Any, Any]]:
        """The entries that are here from key ``lower`` to key ``upper``, both included; None: without bound."""
        found = self.query(lambda store: _read(_method(store, "range")(lower, upper)))
        return [entry for entries in found for entry in entries]

    def approximate_count(self) -> int:
        """About how many entries are here."""
        return sum(self.query(lambda store: int(_method(store, "approximate_count")())))

    def query(self, read: Callable[[Any], R]) -> list[R]:
        """What ``read`` gives for the store of each task that runs here. It runs in the stream threads: it must neither
        write nor take long, and must not keep iterators."""
        answers = self._ask(read)
        if not answers.results and self._placing is not None:
            raise self._placing.not_here(answers.found)
        return list(answers.results.values())

    def _of_key(self, key: Any, read: Callable[[Any], Any]) -> list[Any]:
        """What was found of a key. Raises ``StateError`` if there is nothing here, and may be elsewhere."""
        answers = self._ask(read)
        found = [result for result in answers.results.values() if result is not None and result != []]
        if not found and self._placing is not None:
            self._placing.require_absent(key, answers.found)
        return found

    def _ask(self, read: Callable[[Any], R]) -> _Answers[R]:
        assert self._placing is not None, "a global store is read otherwise"
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
                hint="a function of the application takes very long, or waits",
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
        **not_among(name, has, "of such a store can be read"),
    )


_READS = ("get", "all", "range", "fetch", "find_sessions", "approximate_count")
