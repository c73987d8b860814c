"""The input and the result of a program's own assignor: the setting ``task_assignor_class``.

    def everything_to_the_first(state: ApplicationState) -> TaskAssignment:
        first = min(state.processes)
        return TaskAssignment({name: list(state.tasks) if name == first else [] for name in state.processes})

The member that leads the group calls it at each rebalance, so all members must run the same program. It does not choose
threads: the tasks of a process are spread evenly over its threads.

Source: KIP-924, org.apache.kafka.streams.processor.assignment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pystreams.config import StreamsConfig
from pystreams.ids import TaskId, TopicPartition


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task with its input partitions and the names of its stores. ``replicable``: its stores have changelogs, so it
    can have standbys."""

    task_id: TaskId
    inputs: frozenset[TopicPartition]
    stores: tuple[str, ...]
    replicable: bool


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process: all threads that share a state directory.

    ``active`` and ``standbys`` are the tasks that it has now. ``lags`` are, for each replicable task, the changelog
    offsets that it would have to read before it runs the task; empty if the log did not know. ``tags`` and ``rack`` are
    its ``client_tags`` and ``client.rack``.
    """

    process_id: str
    threads: int
    active: frozenset[TaskId]
    standbys: frozenset[TaskId]
    lags: Mapping[TaskId, int]
    tags: Mapping[str, str]
    rack: str


@dataclass(frozen=True, slots=True)
class ApplicationState:
    """The tasks of the application and the processes of its group, by their ids, and the settings of the leader."""

    tasks: Mapping[TaskId, TaskInfo]
    processes: Mapping[str, ProcessState]
    config: StreamsConfig


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """The active and the standby tasks of each process, by process id. Each task is active in one process; ``active``
    has every process, also those without tasks. ``follow_up_ms``: the group rebalances again after this time; 0: only
    when something changes."""

    active: Mapping[str, Collection[TaskId]]
    standbys: Mapping[str, Collection[TaskId]] = field(default_factory=dict)
    follow_up_ms: int = 0


class TaskAssignor(Protocol):
    """Assigns the tasks of an application. A function with the same argument and result may be used instead."""

    def assign(self, state: ApplicationState) -> TaskAssignment:
        """Called by the leader of the group, perhaps on a thread of the Kafka client; must not block."""
        ...
