"""The records that a client has left out: moved to the dead-letter topic, skipped because they failed, or dropped.

The first one of each kind is logged in full, the others are counted, and their number is logged periodically.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from pystreams.engine.failures.lateness import LateRecords, add_up, late_text, spell_step
from pystreams.engine.failures.unmatched import Unmatched, add_up_unmatched, never_found
from pystreams.ids import TaskId
from pystreams.topology.nodes import SourceNode, source_of

log = logging.getLogger(__name__)

LOG_INTERVAL_MS: Final = 30_000

#: The number of failures that are remembered, and the length to which the text of an error is cut.
_LAST_MAX: Final = 20
_ERROR_CHARACTERS_MAX: Final = 300


class Fate(Enum):
    """The fate of a record that is left out. A record that is too late only for its join partners is not left out: it
    is reported, too, but not counted among those."""

    DEAD_LETTER = "moved to the dead-letter topic"
    SKIPPED = "skipped"
    DROPPED = "dropped"
    WITHOUT_PARTNERS = "too late for its partners"


class Step(NamedTuple):
    """A step that leaves records out: its name, its store if the program named it, and the sources that lead to it."""

    name: str
    store: str = ""
    sources: tuple[SourceNode, ...] = ()

    @property
    def spelled(self) -> str:
        """``step COUNT (store counts)``."""
        return spell_step(self.name, self.store)


class Kind(NamedTuple):
    """Records that are counted together; ``topic`` is that of the input, None if no input record is at work. ``late``:
    they are too late for a window, and a longer grace would have kept them."""

    fate: Fate
    step: Step
    why: str
    topic: str | None
    late: bool = False

    @property
    def origin(self) -> str:
        """The topic and step where they were left out."""
        return self.step.spelled if self.topic is None else f"topic {self.topic}, {self.step.spelled}"


class LeftOutRecord(NamedTuple):
    """A record that failed: the time (wall clock), the task, its place in the input, and the text of the error."""

    at_ms: int
    kind: Kind
    task: TaskId
    position: str
    error: str


class _Counts(NamedTuple):
    """The counts of one task at its last commit; see ``TaskCounts``."""

    kinds: dict[Kind, int]
    fates: dict[Fate, int]
    late: dict[Step, LateRecords]
    read: dict[str, int]


class TaskCounts:
    """The counts of one task. Its thread adds to them, any thread may read them.

    Counts since the last commit are discarded if that work is undone, because it is then done and counted again."""

    def __init__(self) -> None:
        self.kinds: dict[Kind, int] = {}
        #: The number of records by fate. Each record counts once, even if several steps drop it.
        self.fates: dict[Fate, int] = {}
        #: By step. ``read`` is not set.
        self.late: dict[Step, LateRecords] = {}
        #: The number of records that were read, by topic.
        self.read: dict[str, int] = {}
        #: The joins, by step. Their misses are counted with each commit.
        self.unmatched: dict[str, Unmatched] = {}
        self._committed = self._now({})

    def commit(self, waiting: Mapping[str, int]) -> None:
        """The work so far is committed; ``waiting`` counts the records that were read and not processed, by topic."""
        self._committed = self._now(waiting)

    def add_unmatched(self, join: Unmatched) -> None:
        """Count the records without a match of a join since the last commit, which are committed now."""
        before = self.unmatched.get(join.step)
        self.unmatched[join.step] = (
            join if before is None else before.and_more(join.records, found=join.found)
        )

    def take_back(self) -> None:
        """The work since the last commit is undone."""
        kinds, fates, late, read = self._committed
        self.kinds, self.fates, self.late, self.read = dict(kinds), dict(fates), dict(late), dict(read)

    def _now(self, waiting: Mapping[str, int]) -> _Counts:
        read = {topic: records - waiting.get(topic, 0) for topic, records in self.read.items()}
        return _Counts(dict(self.kinds), dict(self.fates), dict(self.late), read)

    def add(self, kind: Kind, *, again: bool) -> bool:
        """Count a record; ``again``: another step has left it out before. Returns whether it is the first of its
        kind."""
        n = self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if not again:
            self.fates[kind.fate] = self.fates.get(kind.fate, 0) + 1
        return n == 1

    def add_late(self, step: Step, records: int, late_ms: int, grace_ms: int, ahead_time: int = 0) -> None:
        """Count records that were too late; 0 records: only update how late they were, for a record that is already
        counted. ``ahead_time`` is stream time, if it was ahead of the clock."""
        late = self.late.get(step) or LateRecords(step.name, step.store)
        self.late[step] = late.and_more(records, late_ms, grace_ms, ahead_time)

    def add_read(self, topic: str, records: int) -> None:
        """Count records that the task was given."""
        self.read[topic] = self.read.get(topic, 0) + records


class LeftOut:
    """Counts for all tasks of a client."""

    def __init__(self, dead_letter_topic: str | None = None, unbounded: Collection[int] = ()) -> None:
        """``unbounded``: the sub-topologies whose stream time does not wait for others only because of
        ``stream_time=java``."""
        self._labels = {fate: fate.value for fate in Fate}
        if dead_letter_topic is not None:
            self._labels[Fate.DEAD_LETTER] += f" {dead_letter_topic}"
        self._unbounded = unbounded
        self._lock = threading.Lock()
        self._by_task: dict[TaskId, TaskCounts] = {}
        self._logged: Counter[Kind] = Counter()
        self._logged_ms: float | None = None
        #: The joins for which it was already logged that they never find a match.
        self._logged_joins: set[str] = set()
        self._last: deque[LeftOutRecord] = deque(maxlen=_LAST_MAX)

    def of_task(self, task: TaskId) -> TaskCounts:
        """The counts of a task, which continue those of its earlier runs in this client."""
        with self._lock:
            return self._by_task.setdefault(task, TaskCounts())

    def log_first(self, kind: Kind, task: TaskId, position: str, details: str = "") -> None:
        """Log a task's first record of a kind, if it is also the client's first. ``position`` is its place in the
        input, ``details`` say more about the cause."""
        with self._lock:
            if kind in self._logged:
                return
            self._logged[kind] = 1
        log.warning(
            "a record was %s: task %s, %s, %s: %s%s; more of this kind are counted",
            self._labels[kind.fate],
            task,
            kind.step.spelled,
            position,
            kind.why,
            f": {details}" if details else "",
            extra={"task": task},
        )

    def remember(self, record: LeftOutRecord) -> None:
        """Keep a record that failed among the last ones."""
        self._last.append(record._replace(error=record.error[:_ERROR_CHARACTERS_MAX]))

    def last(self) -> list[LeftOutRecord]:
        """The last records that failed, and were skipped or moved to the dead-letter topic; the newest one first."""
        return list(self._last.copy())[::-1]

    def log_counts(self, now_ms: float, interval_ms: float = LOG_INTERVAL_MS) -> None:
        """Log the counts if they have changed, and were last logged at least ``interval_ms`` ago. ``now_ms`` is a
        monotonic time."""
        with self._lock:
            if self._logged_ms is None:
                self._logged_ms = now_ms
            if now_ms - self._logged_ms < interval_ms:
                return
            self._logged_ms = now_ms
            counts = self._count()
            more = {kind: n for kind, n in counts.items() if n > self._logged[kind]}
            self._logged.update({kind: n - self._logged[kind] for kind, n in more.items()})
        self._log_joins()
        late = {one.step: one for one in self.late()}
        for kind, n in more.items():
            log.warning(
                "%s records so far were %s (%s): %s%s",
                f"{n:,}",
                self._labels[kind.fate],
                kind.origin,
                kind.why,
                f"; {_worst(late[kind.step.name])}" if kind.late and kind.step.name in late else "",
            )

    def _log_joins(self) -> None:
        """Log once for each join that it never finds a match."""
        for join in never_found(self.unmatched()):
            if join.step not in self._logged_joins:
                self._logged_joins.add(join.step)
                log.warning("%s", join.text)

    def unmatched(self) -> list[Unmatched]:
        """All joins, with the records without a match."""
        with self._lock:
            by_task = list(self._by_task.values())
        return add_up_unmatched(join for counts in by_task for join in dict(counts.unmatched).values())

    def late(self) -> list[LateRecords]:
        """The records that were dropped because they were too late, by step; the step with most of them first."""
        with self._lock:
            by_task = dict(self._by_task)
        steps = {step: task.subtopology for task, counts in by_task.items() for step in dict(counts.late)}
        return add_up(
            counts.late.get(step, LateRecords(step.name))._replace(
                read=_read_for(step, dict(counts.read)), unbounded=subtopology in self._unbounded
            )
            for step, subtopology in steps.items()
            for task, counts in by_task.items()
            if task.subtopology == subtopology
        )

    def totals(self) -> dict[str, int]:
        """The counts by fate, in words, without zeros."""
        with self._lock:
            by_task = list(self._by_task.values())
        by_fate: Counter[Fate] = Counter()
        for counts in by_task:
            # An atomic copy, because the task may add counts at the same time.
            by_fate.update(dict(counts.fates))
        return {self._labels[fate]: by_fate[fate] for fate in Fate if by_fate[fate]}

    def causes(self) -> dict[str, int]:
        """Why records were dropped, such as ``null key``; without late ones, about which ``late`` says more."""
        causes: Counter[str] = Counter()
        for kind, n in self.kinds().items():
            if kind.fate is Fate.DROPPED and not kind.late:
                causes[kind.why] += n
        return dict(causes)

    def kinds(self) -> Counter[Kind]:
        """The counts by kind."""
        with self._lock:
            return self._count()

    def _count(self) -> Counter[Kind]:
        counts: Counter[Kind] = Counter()
        for of_task in self._by_task.values():
            counts.update(dict(of_task.kinds))
        return counts


def totals_text(found: Mapping[str, int], late: Sequence[LateRecords] = ()) -> str:
    """``left out: 2 skipped, 1 dropped``, and how late the dropped records were; empty if nothing was left out."""
    each = ", ".join(f"{n:,} {fate}" for fate, n in found.items())
    return "; ".join(filter(None, (f"left out: {each}" if each else "", late_text(late))))


def _read_for(step: Step, read: Mapping[str, int]) -> int:
    return sum(n for topic, n in read.items() if source_of(step.sources, topic) is not None)


def _worst(late: LateRecords) -> str:
    """How late the records are, and their numbers if there are many."""
    return late.numbers if late.many else late.remedy
