"""Plans the response of a thread to a new assignment: a pure function makes a list of instructions.

The protocol requires the order. Tasks that leave are committed and closed before anything is claimed, because another
member may start on their partitions right after the claim. New tasks are opened before the claim, too, so that their
committed offsets are read while no member can be joining.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pystreams.errors import TopicError
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.task import TaskStatus

Inputs: TypeAlias = frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class CommitAll:
    """Commit all running tasks of the thread: they share one producer, so they commit together."""


@dataclass(frozen=True, slots=True)
class CloseTask:
    """Close a task; its work is committed already, or must be discarded. ``becomes_standby``: its committed state
    continues as a standby here."""

    task: TaskId
    becomes_standby: bool = False


@dataclass(frozen=True, slots=True)
class OpenTask:
    """Take a task on."""

    task: TaskId
    inputs: Inputs


@dataclass(frozen=True, slots=True)
class OpenStandby:
    """Keep the stores of a task up to date from now on."""

    task: TaskId


@dataclass(frozen=True, slots=True)
class CloseStandby:
    """Stop keeping the stores of a task up to date."""

    task: TaskId


@dataclass(frozen=True, slots=True)
class Promote:
    """Take on a task whose standby is here: it continues with the standby's open stores."""

    task: TaskId
    inputs: Inputs


@dataclass(frozen=True, slots=True)
class AbortAll:
    """Discard all work since the last commit."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Report to the group which partitions this member holds now."""

    partitions: frozenset[TopicPartition]


Instruction: TypeAlias = (
    CommitAll | CloseTask | OpenTask | Promote | OpenStandby | CloseStandby | AbortAll | Claim
)


def plan_assignment(
    current: Mapping[TaskId, tuple[TaskStatus, Inputs]],
    assigned: Collection[TopicPartition],
    inputs_of: Mapping[TaskId, Inputs],
    current_standbys: Collection[TaskId] = (),
    standbys: Collection[TaskId] = (),
) -> list[Instruction]:
    """The instructions that lead from the current tasks to those whose inputs are all assigned, and from the current
    standbys to ``standbys``. If another member still holds an input of a task, the task comes with a later assignment.
    A task whose inputs are here is no standby.

    Raises ``TopicError`` for a partition that belongs to no task that this member knows: no member would ever read it.
    """
    available = frozenset(assigned)
    unknown = available.difference(*inputs_of.values())
    if unknown:
        raise TopicError(
            f"the group assigns partitions that this member knows nothing of: {', '.join(map(str, sorted(unknown)))}",
            why="the member that leads the group was started after topics or partitions were added, this one before",
            hint="restart this instance",
        )
    target = {task: inputs for task, inputs in inputs_of.items() if inputs <= available}
    kept_filled = frozenset(standbys) & inputs_of.keys() - target.keys()
    closing = sorted(task for task, (_, inputs) in current.items() if target.get(task) != inputs)
    staying = current.keys() - closing
    plan: list[Instruction] = [
        CloseTask(task, becomes_standby=task in kept_filled and current[task][0] is TaskStatus.RUNNING)
        for task in closing
    ]
    if any(current[task][0] is TaskStatus.RUNNING for task in closing):
        # Records that processors write while they are closed come after the commit. They must not be part of the next.
        plan = [CommitAll(), *plan, AbortAll()]
    new = sorted(target.keys() - staying)
    plan += [CloseStandby(task) for task in sorted({*current_standbys} - kept_filled - {*new})]
    plan += [
        Promote(task, target[task]) if task in current_standbys else OpenTask(task, target[task])
        for task in new
    ]
    plan += [OpenStandby(task) for task in sorted(kept_filled - {*current_standbys})]
    plan.append(Claim(available))
    return plan


def plan_loss(current: Collection[TaskId]) -> list[Instruction]:
    """The plan after the loss of membership, when nothing may be committed any more. Unsent records are discarded
    first, because closing takes time, and once more at the end, because processors may write while they are closed."""
    return [AbortAll(), *(CloseTask(task) for task in sorted(current)), AbortAll(), Claim(frozenset())]
