"""Places the standby replicas: chooses for each task with changelogs the processes that keep its stores up to date.

A standby is never in the process of its active task, and no process has two standbys of one task. First, standbys are
spread over the client tags as far as these differ; then, a standby stays where it is, or goes where the state is; last,
as few as possible move from processes with many tasks per thread to processes with few.

Source: KIP-708, ClientTagAwareStandbyTaskAssignor, ClientState.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from pystreams.ids import TaskId
from pystreams.runtime.group.situation import ProcessFacts, Situation

log = logging.getLogger(__name__)

#: The tag that stands for the rack, if a rack-aware strategy is in force. It cannot be the name of a tag of the user.
_RACK_TAG: Final = ""


def place_standbys(situation: Situation, active: Mapping[TaskId, str]) -> dict[TaskId, list[str]]:
    """The processes of each task's standbys, given the process of each active task."""
    if not situation.settings.num_standby_replicas:
        return {}
    places = StandbyPlaces(situation, active)
    places.keep()
    places.fill()
    places.level()
    return places.standbys


class StandbyPlaces:
    """The standbys of the tasks while they are being placed."""

    def __init__(self, situation: Situation, active: Mapping[TaskId, str]) -> None:
        facts, settings = situation.facts, situation.settings
        self._situation = situation
        self._active = active
        self._processes = situation.processes
        self._tasks = sorted(facts.replicable)
        self._wanted = min(settings.num_standby_replicas, len(self._processes) - 1)
        self.standbys: dict[TaskId, list[str]] = {task: [] for task in self._tasks}
        self._standbys_of: dict[str, set[TaskId]] = {process: set() for process in self._processes}
        self._tasks_of = Counter(active[task] for task in facts.stateful)
        total = sum(self._tasks_of.values()) + self._wanted * len(self._tasks)
        threads = len(situation.members)
        self._share = {
            name: -(-total * process.threads // threads) for name, process in self._processes.items()
        }
        tag_names = [*settings.rack_aware_assignment_tags] + [_RACK_TAG] * situation.rack_aware
        self._tags = {name: _tags(process, tag_names) for name, process in self._processes.items()}
        self._values = {tag: {tags[tag] for tags in self._tags.values() if tag in tags} for tag in tag_names}
        missing = settings.num_standby_replicas - self._wanted
        if missing and self._tasks:
            log.warning(
                "%d of %d standby replicas of each task have no place: a standby needs another process with a state"
                " directory of its own, and there are %d",
                missing,
                settings.num_standby_replicas,
                len(self._processes),
            )

    def keep(self) -> None:
        """Place standbys in processes that already have the task, where the tags permit it."""
        for task in self._tasks:
            now = self._now(task)
            while len(self.standbys[task]) < self._wanted:
                free, taken = self._free(task), self._taken(task)
                of_now = [process for process in now if process in free]
                best = min(of_now, key=partial(self._conflicts, taken), default=None)
                if best is None:
                    break
                conflicts = self._conflicts(taken, best)
                if conflicts and conflicts > min(self._conflicts(taken, process) for process in free):
                    break
                self._place(task, best)

    def _now(self, task: TaskId) -> list[str]:
        """The processes that have the task, the best standbys first."""
        situation = self._situation
        owner = situation.owners.get(task)
        runs_on = "" if owner is None else owner.process_id
        held = {member.process_id for member in situation.standby_holders.get(task, ())}
        held |= {runs_on} & self._processes.keys()
        ready, lags = situation.ready(task), situation.lags(task)
        return sorted(
            held, key=lambda process: (process not in ready, process == runs_on, lags[process], process)
        )

    def fill(self) -> None:
        """Place the missing standbys: first one of each task, then the next one of each."""
        for count in range(1, self._wanted + 1):
            for task in self._tasks:
                if len(self.standbys[task]) < count:
                    self._place(task, self._best(task))

    def _best(self, task: TaskId) -> str:
        situation = self._situation
        taken, lags = self._taken(task), situation.lags(task)

        def preference(process: str) -> tuple[Any, ...]:
            full = self._full(process)
            crossing = situation.changelog_crossing(task, self._processes[process].rack)
            conflicts, lag = self._conflicts(taken, process), 0 if full else lags[process]
            return conflicts, full, crossing, lag, self._load(process), process

        return min(self._free(task), key=preference)

    def level(self) -> None:
        """Move standbys from processes with many tasks per thread to those with few, as long as that makes the loads
        more equal and no standby gets more tags in common with another one."""
        while self._level_two():
            pass

    def _level_two(self) -> bool:
        by_load = sorted(self._processes, key=lambda process: (self._load(process), process))
        for source in reversed(by_load):
            #: Tags of processes that were tried: another process with the same tags would give the same result.
            tried: list[Mapping[str, str]] = []
            for target in by_load:
                if self._load(source) <= self._load(target, 1):
                    break
                if self._tags[target] in tried:
                    continue
                tried.append(self._tags[target])
                if self._move_one(source, target):
                    return True
        return False

    def _move_one(self, source: str, target: str) -> bool:
        for task in sorted(self._standbys_of[source], reverse=True):
            if target in self._used(task):
                continue
            self._displace(task, source)
            taken = self._taken(task)
            moves = self._conflicts(taken, target) <= self._conflicts(taken, source)
            self._place(task, target if moves else source)
            if moves:
                return True
        return False

    def _place(self, task: TaskId, process: str) -> None:
        self.standbys[task].append(process)
        self._standbys_of[process].add(task)
        self._tasks_of[process] += 1

    def _displace(self, task: TaskId, process: str) -> None:
        self.standbys[task].remove(process)
        self._standbys_of[process].remove(task)
        self._tasks_of[process] -= 1

    def _used(self, task: TaskId) -> list[str]:
        return [self._active[task], *self.standbys[task]]

    def _free(self, task: TaskId) -> list[str]:
        used = self._used(task)
        return [process for process in self._processes if process not in used]

    def _full(self, process: str) -> bool:
        return self._tasks_of[process] >= self._share[process]

    def _load(self, process: str, more: int = 0) -> float:
        return (self._tasks_of[process] + more) / self._processes[process].threads

    def _taken(self, task: TaskId) -> set[tuple[str, str]]:
        """The tags of the processes that have the task already, except tags of which all values are in use."""
        used = [self._tags[process] for process in self._used(task)]
        taken = set[tuple[str, str]]()
        for tag, values in self._values.items():
            in_use = {tags[tag] for tags in used if tag in tags}
            if in_use != values:
                taken |= {(tag, value) for value in in_use}
        return taken

    def _conflicts(self, taken: set[tuple[str, str]], process: str) -> int:
        """The number of the process' tags that are taken already."""
        return len(taken & self._tags[process].items()) if taken else 0


def _tags(process: ProcessFacts, names: list[str]) -> dict[str, str]:
    known = {**process.tags, _RACK_TAG: process.rack}
    return {name: known[name] for name in names if known.get(name)}
