"""Who owned which task when, out of the journals of all processes; and whether two live ones ever owned the same.

A process owns a task from the line ``open`` to the line ``close``, or to the moment when its end was seen (a kill is
over when it was reaped). It *lives* from any sign of life that the coordinator acknowledged until a session timeout
after it was sent: that long the coordinator keeps the member, and nobody else is given its tasks. A process that is
frozen or cut off for longer is a zombie. It believes that it owns its tasks, and whatever it does until it notices
cannot be committed; so it may share a task with its successor, and two that live may not.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Span(NamedTuple):
    """A stretch of the machine's monotonic clock, in seconds."""

    start: float
    end: float

    def shared(self, other: Span) -> float:
        """For how long both last; negative if they do not meet."""
        return min(self.end, other.end) - max(self.start, other.start)


class Overlap(NamedTuple):
    """Two processes that owned a task at once."""

    task: str
    one: str
    other: str
    seconds: float


@dataclass
class History:
    """What one process has written down."""

    owned: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    lived: list[Span] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    replaced: int = 0

    def owned_alive(self, task: str) -> list[Span]:
        """When the process owned a task and was alive."""
        return [
            Span(max(owned.start, lived.start), min(owned.end, lived.end))
            for owned in self.owned.get(task, ())
            for lived in self.lived
            if owned.shared(lived) > 0
        ]


def read_history(journal: Path, ended: float, session_timeout_s: float) -> History:
    """``ended`` is when the process was seen to be gone."""
    history = History()
    open_since: dict[str, float] = {}
    for line in journal.read_text().splitlines():
        entry = json.loads(line)
        match entry["what"]:
            case "open":
                open_since[entry["task"]] = entry["at"]
            case "close":
                task = entry["task"]
                history.owned[task].append(Span(open_since.pop(task), entry["at"]))
            case "alive":
                history.lived.append(Span(entry["since"], entry["until"] + session_timeout_s))
            case "refused":
                history.refused.append(entry)
            case "replaced":
                history.replaced += 1
    for task, since in open_since.items():
        history.owned[task].append(Span(since, ended))
    history.lived = _merged(history.lived)
    return history


def overlaps(histories: Mapping[str, History], *, alive: bool) -> list[Overlap]:
    """Tasks that two processes owned at once; ``alive``: while both of them lived."""
    found = []
    for task in sorted({task for history in histories.values() for task in history.owned}):
        spans = [
            (span, name)
            for name, history in histories.items()
            for span in (history.owned_alive(task) if alive else history.owned.get(task, ()))
        ]
        spans.sort()
        for index, (span, name) in enumerate(spans):
            for later, other in spans[index + 1 :]:
                if later.start >= span.end:
                    break
                if other != name:
                    found.append(Overlap(task, name, other, span.shared(later)))
    return found


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
