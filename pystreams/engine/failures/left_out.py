"""The records that a client has left out: moved to the dead-letter topic, skipped because they failed, or dropped.

The first one of each kind is logged in full, the others are counted, and their number is logged now and then.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping, MutableMapping
from enum import Enum
from typing import Final, NamedTuple

from pystreams.ids import TaskId

log = logging.getLogger(__name__)

LOG_INTERVAL_MS: Final = 30_000


class Fate(Enum):
    """The fate of a record that is left out."""

    DEAD_LETTER = "moved to the dead-letter topic"
    SKIPPED = "skipped"
    DROPPED = "dropped"


class Kind(NamedTuple):
    """Records that are counted together; ``topic`` is that of the input, None where no input record is at work."""

    fate: Fate
    step: str
    why: str
    topic: str | None

    @property
    def origin(self) -> str:
        """The topic and step where they were left out."""
        return f"step {self.step}" if self.topic is None else f"topic {self.topic}, step {self.step}"


class LeftOut:
    """Counts for all tasks of a client. Each task adds to a mapping of its own, which any thread may read."""

    def __init__(self, dead_letter_topic: str | None = None) -> None:
        self._labels = {fate: fate.value for fate in Fate}
        if dead_letter_topic is not None:
            self._labels[Fate.DEAD_LETTER] += f" {dead_letter_topic}"
        self._lock = threading.Lock()
        self._by_task: dict[TaskId, dict[Kind, int]] = {}
        self._logged: Counter[Kind] = Counter()
        self._logged_ms: float | None = None

    def of_task(self, task: TaskId) -> MutableMapping[Kind, int]:
        """The counts of a task, which continue those of its earlier runs in this client."""
        with self._lock:
            return self._by_task.setdefault(task, {})

    def log_first(self, kind: Kind, task: TaskId, position: str, error: str) -> None:
        """Log a task's first record of a kind, if it is also the client's first. ``position`` is its place in the
        input, ``error`` the exception, if there was one."""
        with self._lock:
            if kind in self._logged:
                return
            self._logged[kind] = 1
        log.warning(
            "a record was %s: task %s, step %s, %s: %s%s; more of this kind are counted",
            self._labels[kind.fate],
            task,
            kind.step,
            position,
            kind.why,
            f": {error}" if error else "",
            extra={"task": task},
        )

    def log_counts(self, now_ms: float, interval_ms: float = LOG_INTERVAL_MS) -> None:
        """Log the counts, unless they have not changed, or the last time was less than ``interval_ms`` ago. ``now_ms``
        is a monotonic time."""
        with self._lock:
            if self._logged_ms is None:
                self._logged_ms = now_ms
            if now_ms - self._logged_ms < interval_ms:
                return
            self._logged_ms = now_ms
            counts = self._counts()
            more = {kind: n for kind, n in counts.items() if n > self._logged[kind]}
            self._logged.update({kind: n - self._logged[kind] for kind, n in more.items()})
        for kind, n in more.items():
            log.warning(
                "%s records so far were %s (%s): %s", f"{n:,}", self._labels[kind.fate], kind.origin, kind.why
            )

    def totals(self) -> dict[str, int]:
        """The counts by fate, in words, without zeros."""
        with self._lock:
            counts = self._counts()
        by_fate: Counter[Fate] = Counter()
        for kind, n in counts.items():
            by_fate[kind.fate] += n
        return {self._labels[fate]: by_fate[fate] for fate in Fate if by_fate[fate]}

    def _counts(self) -> Counter[Kind]:
        counts: Counter[Kind] = Counter()
        for of_task in self._by_task.values():
            # An atomic copy, because the task may add counts at the same time.
            counts.update(dict(of_task))
        return counts


def totals_text(found: Mapping[str, int]) -> str:
    """``left out: 2 skipped, 1 dropped``; empty if nothing was."""
    each = ", ".join(f"{n:,} {fate}" for fate, n in found.items())
    return f"left out: {each}" if each else ""
