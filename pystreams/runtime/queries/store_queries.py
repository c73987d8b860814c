"""Access to the stores of the tasks that run in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from html import escape
from typing import Any, TypeVar

from pystreams.clock import Clock
from pystreams.errors import StateError
from pystreams.nearest import not_among
from pystreams.runtime.group.membership_data import Places, Whereabouts
from pystreams.runtime.queries.answers import Answer, Answers, Demands, nothing
from pystreams.runtime.queries.committed_reads import (
    commit_marks,
    committed_answers,
    committed_at_once,
    reads_at_once,
)
from pystreams.runtime.queries.latest_reads import latest_answers, latest_call
from pystreams.runtime.queries.placing import Placing
from pystreams.runtime.queries.whereabouts import places_in
from pystreams.runtime.tasks.task_manager import TaskManager
from pystreams.runtime.threads.stream_thread import StreamThread
from pystreams.state.commit_mark import CommitMark
from pystreams.state.store import READS

R = TypeVar("R")


class LocalStore:
    """The part of a store in this process: the partitions whose tasks run here (see ``partitions``). Headers are shown
    if the store was requested with headers.

    ``freshness`` decides which thread reads (see ``Streams.store``). With ``latest`` the tasks' own threads read
    between two steps: a read sees complete updates, including cached ones, and waits for the thread's current step
    (tens of milliseconds; a few if the thread is idle). With ``committed`` the calling thread reads the last commit of
    each task as a whole. Tasks commit independently of each other.

    A read of one key raises ``StateError`` if the key may be in another process, and never reports it as absent; the
    error names the partition and its owner. Reads of many keys cover the partitions in this process, task by task.
    Every method raises ``StateError`` if no task of this process has the store, as during a rebalance, if a demanded
    position is not reached in time, and if stores of its kind do not have the method.
    """

    def __init__(
        self,
        name: str,
        threads: Callable[[], Sequence[StreamThread]],
        whereabouts: Callable[[], Whereabouts],
        placing: Placing | None,
        clock: Clock,
        demands: Demands,
        *,
        headers: bool = False,
    ) -> None:
        self._name = name
        self._threads = threads
        #: Returns the places of all tasks as last sent by the group.
        self._whereabouts = whereabouts
        #: How the store's keys are spread over partitions; None: this process has the whole store.
        self.placing = placing
        self._clock = clock
        self._demands = demands
        self._headers = headers

    def __repr__(self) -> str:
        # Nothing is read for it: a thread might keep a debugger waiting.
        part = "all partitions" if self.placing is None else "the partitions of this process"
        return f"Store {self._name}: {part}"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<p>{escape(repr(self))}</p>"

    # Of one key

    def get(self, key: Any, as_of: int | None = None) -> Any:
        """The value of a key, None if there is none in any process. ``as_of``: of a versioned store, the version that
        was valid at this time (ms)."""
        return self._of_key(key, "get", *(() if as_of is None else (as_of,)))

    def versions(self, key: Any) -> list[Any]:
        """Of a versioned store: all versions of a key that are still kept, the earliest first."""
        return self._of_key(key, "versions") or []

    def fetch(self, key: Any, *times_ms: int) -> Any:
        """Of a window store, with one time: the value of the key's window that starts then, or None; with two: start
        and value of its windows that start between them, both included. Of a session store, without times: the key's
        sessions with their values."""
        found = self._of_key(key, "fetch", *times_ms)
        return found if len(times_ms) == 1 else found or []

    def kept_from_ms(self, key: Any) -> int:
        """Of a window or session store: the time (ms) before which windows of a key have expired by their start, or
        sessions by their end, and are not found any more; 0: none have expired."""

        def read(store: Any) -> int:
            return int(_part(store, "first_visible_ms", "kept_from_ms"))

        if self.placing is None:
            return max(0, self.ask(read)[0].result)
        likely = self.placing.likely_partition(key)
        answers = self.answers(read, None if likely is None else [likely])
        self.placing.require_absent(key, answers.found)
        return max(0, min(answer.result for answer in answers.by_partition.values()))

    def backward_fetch(self, key: Any, *times_ms: int) -> list[tuple[Any, Any]]:
        """As ``fetch``, the latest window or session first."""
        return self._of_key(key, "backward_fetch", *times_ms) or []

    def fetch_session(self, key: Any, start_ms: int, end_ms: int) -> Any:
        """Of a session store: the value of exactly this session, or None."""
        return self._of_key(key, "fetch_session", start_ms, end_ms)

    def find_sessions(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> list[tuple[Any, Any]]:
        """Of a session store: the key's sessions, with their values, that end at the earliest end or later and start at
        the latest start or earlier."""
        return self._of_key(key, "find_sessions", earliest_end_ms, latest_start_ms) or []

    def backward_find_sessions(
        self, key: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> list[tuple[Any, Any]]:
        """As ``find_sessions``, the latest session first."""
        return self._of_key(key, "backward_find_sessions", earliest_end_ms, latest_start_ms) or []

    def ask_key(self, key: Any, read: Callable[[Any], R]) -> Answer[R | None]:
        """The result of ``read`` for the store of the partition that has a key, with its position. If ``read`` returns
        None or an empty list for all partitions, the key is absent, and the result is None. ``read``: see ``query``."""
        assert self.placing is not None, "GlobalLocalStore reads global stores"
        likely = self.placing.likely_partition(key)
        answers = self.answers(read, None if likely is None else [likely])
        found = _with_result(answers)
        if found is None and likely is not None:
            # Read all partitions here, so that a wrong partitioner does not hide a key.
            found = _with_result(self.answers(read))
        if found is not None:
            return found
        self.placing.require_absent(key, answers.found)
        absent = answers.by_partition
        return nothing([absent[likely]] if likely in absent else absent.values())

    # Of all partitions

    @property
    def places(self) -> dict[int, Places]:
        """By partition, the member that has it and the members that have standbys of it, with their endpoints, as last
        sent by the group. Empty for a global store, which every process has, and before the client is started. Source:
        KafkaStreams.streamsMetadataForStore."""
        placing = self.placing
        if placing is None:
            return {}
        return places_in(placing.subtopology, placing.partitions, self._whereabouts())

    def owner(self, key: Any) -> Places | None:
        """The places of the partition of a key; None if the partition is not known (see ``partitioner`` of
        ``Streams.store``). Source: KafkaStreams.queryMetadataForKey."""
        partition = None if self.placing is None else self.placing.likely_partition(key)
        return None if partition is None else self.places[partition]

    # Of the partitions that are here

    def reads_at_once(self) -> bool:
        """Whether a read would not wait now: it is a committed read, and no task is just committing its stores. False
        for a global store."""
        placing = self._placing_of_commits
        return placing is not None and reads_at_once(self._name, placing.subtopology, self._threads())

    def committed_at_once(
        self, partitions: Collection[int], read: Callable[[Any], R]
    ) -> dict[int, Answer[R]]:
        """The results of ``read`` for the last commit of those of these partitions whose tasks run here and are not
        just committing. Empty if the caller demands another freshness or a position."""
        placing = self._placing_of_commits
        if placing is None:
            return {}
        place = self._name, placing.subtopology, self._threads()
        return committed_at_once(*place, partitions, self._shown(read))

    def commit_marks(self, partitions: Collection[int]) -> dict[int, CommitMark]:
        """By partition a mark, for those whose tasks run here. As long as it is the same object,
        ``committed_at_once`` reads the same content."""
        assert self.placing is not None, "GlobalLocalStore reads global stores"
        return commit_marks(self.placing.subtopology, self._threads(), partitions)

    @property
    def partitions(self) -> list[int]:
        """The partitions of the store that reads cover now; empty for a global store, which is complete."""
        return sorted(self.answers(lambda _: None).by_partition)

    def all(self) -> list[tuple[Any, Any]]:
        """All entries in this process, task by task, in the byte order of their keys."""
        return self._of_all("all")

    def reverse_all(self) -> list[tuple[Any, Any]]:
        """As ``all``, each task's entries in descending order."""
        return self._of_all("reverse_all")

    def backward_all(self) -> list[tuple[Any, Any]]:
        """Of a window store: as ``all``, each task's windows in reverse order."""
        return self._of_all("backward_all")

    def range(self, lower: Any, upper: Any) -> list[tuple[Any, Any]]:
        """The entries in this process from key ``lower`` to key ``upper``, both included; None: no bound."""
        return self._of_all("range", lower, upper)

    def reverse_range(self, lower: Any, upper: Any) -> list[tuple[Any, Any]]:
        """As ``range``, each task's entries in descending order."""
        return self._of_all("reverse_range", lower, upper)

    def prefix_scan(
        self, prefix: Any, serialize: Callable[[Any], bytes] | None = None
    ) -> list[tuple[Any, Any]]:
        """The entries in this process whose key's bytes start with those of ``prefix``, which ``serialize`` (default:
        the key's serde) returns."""
        return self._of_all("prefix_scan", prefix, serialize)

    def fetch_all(self, from_ms: int, to_ms: int) -> list[tuple[Any, Any]]:
        """Of a window store: the windows of all keys that start in the time range, with their values."""
        return self._of_all("fetch_all", from_ms, to_ms)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> list[tuple[Any, Any]]:
        """As ``fetch_all``, each task's windows in reverse order."""
        return self._of_all("backward_fetch_all", from_ms, to_ms)

    def fetch_range(self, lower: Any, upper: Any, *times_ms: int) -> list[tuple[Any, Any]]:
        """The windows (two times: that start between them) or sessions of a range of keys, both included."""
        return self._of_all("fetch_range", lower, upper, *times_ms)

    def backward_fetch_range(self, lower: Any, upper: Any, *times_ms: int) -> list[tuple[Any, Any]]:
        """As ``fetch_range``, each task's entries in reverse order."""
        return self._of_all("backward_fetch_range", lower, upper, *times_ms)

    def find_sessions_range(
        self, lower: Any, upper: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> list[tuple[Any, Any]]:
        """As ``find_sessions`` for a range of keys, both included; None: no bound."""
        return self._of_all("find_sessions_range", lower, upper, earliest_end_ms, latest_start_ms)

    def backward_find_sessions_range(
        self, lower: Any, upper: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> list[tuple[Any, Any]]:
        """As ``find_sessions_range``, each task's sessions in reverse order."""
        return self._of_all("backward_find_sessions_range", lower, upper, earliest_end_ms, latest_start_ms)

    def approximate_count(self) -> int:
        """The approximate number of entries in this process."""
        return sum(self.query(lambda store: int(_part(store, "approximate_count")())))

    def query(self, read: Callable[[Any], R]) -> list[R]:
        """The results of ``read`` for the store of each task that runs here. ``read`` must not write, and must not take
        long: with ``latest`` it runs in the stream threads, and with ``committed`` a task waits for it before it
        closes. If it returns an iterator of the store, the result is the list of its entries."""
        return [answer.result for answer in self.ask(read)]

    def ask(self, read: Callable[[Any], R]) -> list[Answer[R]]:
        """As ``query``, each result with its partition and position."""
        answers = self.answers(read)
        if not answers.by_partition and self.placing is not None:
            raise self.placing.not_here(answers.found)
        return list(answers.by_partition.values())

    def answers(self, read: Callable[[Any], R], only: Collection[int] | None = None) -> Answers[R]:
        """As ``ask``, by partition, and with the places of the other partitions. It is no error if no partition is
        here. ``only``: read only these partitions, if reads are committed. Not for global stores, which have no
        partitions: use ``ask``."""
        assert self.placing is not None, "GlobalLocalStore reads global stores"
        self.require_position()
        place = self._name, self.placing.subtopology, self._threads()

        shown = self._shown(read)
        if self._demands.freshness == "latest":
            return latest_answers(*place, self._whereabouts, self._demands, self._clock, shown, only)
        return committed_answers(*place, self._whereabouts, self._demands, self._clock, shown, only)

    def latest_call(
        self, partition: int, read: Callable[[Any], R]
    ) -> tuple[StreamThread, Callable[[TaskManager], Answer[R] | None]] | None:
        """The thread that can read the latest state of a partition, and the function that it must call, for
        ``GatheredReads``. None: its task does not run here, or the caller demands another freshness or a position."""
        if self.placing is None or self._demands.freshness != "latest" or self._demands.at_least:
            return None
        place = self._name, self.placing.subtopology, self._threads()
        return latest_call(*place, self._shown(read), partition)

    @property
    def _placing_of_commits(self) -> Placing | None:
        """The placing, if the caller demands the last commit without a position. None for a global store."""
        demands = self._demands
        return None if demands.freshness == "latest" or demands.at_least else self.placing

    def _shown(self, read: Callable[[Any], R]) -> Callable[[Any], R]:
        """``read`` for the view of the store that the caller wants: with or without headers."""
        return read if self._headers else lambda store: read(store.without_headers())

    def require_position(self) -> None:
        """Raises ``StateError`` if the demanded position names topics that the tasks of the store do not read."""
        if self.placing is not None:
            self.placing.require_inputs(self._demands.at_least)

    def _of_key(self, key: Any, method: str, *arguments: Any) -> Any:
        return self.ask_key(key, lambda store: _part(store, method)(key, *arguments)).result

    def _of_all(self, method: str, *arguments: Any) -> list[tuple[Any, Any]]:
        found = self.query(lambda store: _part(store, method)(*arguments))
        return [entry for entries in found for entry in entries]


def _with_result(answers: Answers[R]) -> Answer[R] | None:
    """The first answer that is not None or an empty list."""
    for answer in answers.by_partition.values():
        result: Any = answer.result
        if result is not None and result != []:
            return answer
    return None


def _part(store: Any, name: str, asked_for: str | None = None) -> Any:
    """A method or property of the store. Raises ``StateError`` if its kind does not have it; the error names
    ``asked_for`` (default: ``name``), which is what the user has called."""
    part = getattr(store, name, None)
    if part is not None:
        return part
    has = [one for one in (*READS, "query") if one == "query" or hasattr(store, one)]
    kind = store.spec.kind.replace("_", "-")
    raise StateError(
        f"store {store.name} does not have {asked_for or name}: it is a {kind} store",
        **not_among(name, has, "its query methods are"),
    )
