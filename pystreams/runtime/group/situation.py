"""The facts from which an assignment is made: the tasks, the members, the progress of the tasks' state in each process,
and the settings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pystreams.config import StreamsConfig
from pystreams.ids import TaskId

#: The lag of state of which nothing is known.
UNKNOWN_LAG: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AssignorMember:
    """A member as the assignor sees it: a thread.

    ``owned`` are the tasks that it holds; those in ``restoring`` do not run yet. ``standbys`` are the tasks whose
    stores it keeps up to date; it is to run those in ``coming`` as soon as it is ready. ``state`` is the progress (sum
    of changelog offsets) of the tasks' state on its process' disk, as the member reported it: members of one process
    share the disk, so the report of one is valid for all. ``tags`` and ``rack`` are the place of the process.
    """

    member_id: str
    process_id: str
    thread: str
    owned: frozenset[TaskId] = frozenset()
    state: Mapping[TaskId, int] = field(default_factory=dict)
    standbys: frozenset[TaskId] = frozenset()
    coming: frozenset[TaskId] = frozenset()
    restoring: frozenset[TaskId] = frozenset()
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str = ""


@dataclass(frozen=True, slots=True)
class AssignorSettings:
    """The settings of the group's leader. Source of names and defaults: AssignmentConfigs."""

    num_standby_replicas: int = 0
    acceptable_recovery_lag: int = 10_000
    max_warmup_replicas: int = 2
    rack_aware_assignment_tags: tuple[str, ...] = ()
    rack_aware_assignment_strategy: str = "none"
    rack_aware_assignment_traffic_cost: int | None = None
    rack_aware_assignment_non_overlap_cost: int | None = None

    @classmethod
    def of(cls, config: StreamsConfig) -> AssignorSettings:
        """The settings in an application's configuration."""
        return cls(
            config.num_standby_replicas,
            config.acceptable_recovery_lag,
            config.max_warmup_replicas,
            tuple(filter(None, config.rack_aware_assignment_tags.split(","))),
            config.rack_aware_assignment_strategy,
            config.rack_aware_assignment_traffic_cost,
            config.rack_aware_assignment_non_overlap_cost,
        )

    @property
    def traffic_cost(self) -> int:
        """The cost of a partition that is read from another rack. Source: HighAvailabilityTaskAssignor."""
        given = self.rack_aware_assignment_traffic_cost
        return 10 if given is None else given

    @property
    def non_overlap_cost(self) -> int:
        """The cost of a task that changes its process."""
        given = self.rack_aware_assignment_non_overlap_cost
        return 1 if given is None else given


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The tasks of the topology. ``stateful`` have stores; ``replicable`` are those of them that have changelogs, which
    standbys can follow.

    ``ends`` are the sums of the end offsets of their changelogs; None: the log did not answer. ``racks`` has for each
    input partition of a task the racks of its replicas, and ``changelog_racks`` has them for its changelogs; both are
    empty if the racks are not known, or do not matter.
    """

    tasks: frozenset[TaskId]
    stateful: frozenset[TaskId] = frozenset()
    replicable: frozenset[TaskId] = frozenset()
    ends: Mapping[TaskId, int] | None = field(default_factory=dict)
    racks: Mapping[TaskId, Sequence[frozenset[str]]] = field(default_factory=dict)
    changelog_racks: Mapping[TaskId, Sequence[frozenset[str]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """A process of the group, with its ``members`` in the order of their threads."""

    process_id: str
    members: tuple[AssignorMember, ...]

    @property
    def threads(self) -> int:
        return len(self.members)

    @property
    def tags(self) -> Mapping[str, str]:
        return next((member.tags for member in self.members if member.tags), {})

    @property
    def rack(self) -> str:
        return next((member.rack for member in self.members if member.rack), "")


class Situation:
    """All facts, and the values that are derived from them. They do not depend on the order of the members."""

    def __init__(
        self, facts: TaskFacts, members: Sequence[AssignorMember], settings: AssignorSettings
    ) -> None:
        self.facts = facts
        self.settings = settings
        self.tasks = sorted(facts.tasks)
        self.members = sorted(members, key=lambda m: (m.process_id, m.thread, m.member_id))
        #: The place of each member, by its id.
        self.indexes = {member.member_id: index for index, member in enumerate(self.members)}
        by_process: dict[str, list[AssignorMember]] = defaultdict(list)
        for member in self.members:
            by_process[member.process_id].append(member)
        self.processes = {name: ProcessFacts(name, tuple(of)) for name, of in by_process.items()}
        #: The member that holds a task; if two members claim it, the first.
        self.owners: dict[TaskId, AssignorMember] = {}
        #: The members that keep the stores of a task up to date.
        self.standby_holders: dict[TaskId, list[AssignorMember]] = defaultdict(list)
        for member in self.members:
            for task in member.owned & facts.tasks:
                self.owners.setdefault(task, member)
            for task in member.standbys & facts.replicable:
                self.standby_holders[task].append(member)
        self._lags: dict[TaskId, Mapping[str, int]] = {}
        self._ready: dict[TaskId, frozenset[str]] = {}

    @cached_property
    def rack_aware(self) -> bool:
        """Whether the racks of all partitions and of all processes are known, and matter."""
        if self.settings.rack_aware_assignment_strategy == "none" or not self.facts.racks:
            return False
        racks = [racks for of_task in self.facts.racks.values() for racks in of_task]
        return all(racks) and all(process.rack for process in self.processes.values())

    def crossing(self, task: TaskId, rack: str) -> int:
        """The number of the task's input partitions that have no replica in the rack."""
        return sum(rack not in racks for racks in self.facts.racks.get(task, ()))

    def changelog_crossing(self, task: TaskId, rack: str) -> int:
        """The number of the task's changelogs that have no replica in the rack; 0 if racks do not matter."""
        if not self.rack_aware:
            return 0
        return sum(rack not in racks for racks in self.facts.changelog_racks.get(task, ()))

    def runs_on(self, task: TaskId) -> str:
        """The process in which a task runs with complete stores; empty if there is none."""
        owner = self.owners.get(task)
        return "" if owner is None or task in owner.restoring else owner.process_id

    def lags(self, task: TaskId) -> Mapping[str, int]:
        """For each process the number of changelog offsets that it would have to read. Without end offsets, the lag is
        the distance to the process with the most progress."""
        found = self._lags.get(task)
        if found is None:
            runs_on = self.runs_on(task)
            lag = self._lag_behind_ends if self._lags_are_known(task) else self._lag_behind_furthest
            found = {process: 0 if process == runs_on else lag(task, process) for process in self.processes}
            self._lags[task] = found
        return found

    def _lag_behind_ends(self, task: TaskId, process_id: str) -> int:
        assert self.facts.ends is not None
        end, reached = self.facts.ends.get(task, 0), self._reached.get(task, {}).get(process_id, 0)
        # State that is ahead of its changelog comes from another changelog, and is restored from the beginning.
        return end - reached if reached <= end else end

    def _lag_behind_furthest(self, task: TaskId, process_id: str) -> int:
        reached = self._reached.get(task, {})
        return max(reached.values()) - reached[process_id] if process_id in reached else UNKNOWN_LAG

    def ready(self, task: TaskId) -> frozenset[str]:
        """The processes that could run the task at once: those within ``acceptable_recovery_lag``; if there are none,
        those with the least lag. Source: HighAvailabilityTaskAssignor.tasksToCaughtUpClients."""
        found = self._ready.get(task)
        if found is None:
            lags = self.lags(task)
            acceptable = self.settings.acceptable_recovery_lag if self._lags_are_known(task) else 0
            limit = max(acceptable, min(lags.values()))
            found = self._ready[task] = frozenset(process for process, lag in lags.items() if lag <= limit)
        return found

    def furthest(self, task: TaskId) -> frozenset[str]:
        """The processes with the least lag; all processes if none has any state of the task."""
        lags = self.lags(task)
        least = min(lags.values())
        return frozenset(process for process, lag in lags.items() if lag == least)

    def _lags_are_known(self, task: TaskId) -> bool:
        return self.facts.ends is not None and task in self.facts.replicable

    @cached_property
    def _reached(self) -> dict[TaskId, dict[str, int]]:
        reached: dict[TaskId, dict[str, int]] = defaultdict(dict)
        for member in self.members:
            for task, offset in member.state.items():
                of_task = reached[task]
                of_task[member.process_id] = max(offset, of_task.get(member.process_id, offset))
        return reached
