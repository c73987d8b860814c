"""The status of an application as tables for people, and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from pystreams.nearest import listing

if TYPE_CHECKING:
    from pystreams.ids import TaskId
    from pystreams.runtime.group.application_status import ApplicationStatus, InputStatus, MemberStatus

STATUS_COLUMNS: Final = ("thread", "host", "tasks", "standbys", "lag")
LAG_COLUMNS: Final = ("topic", "partition", "task", "thread", "committed", "end", "lag")

_NOBODY: Final = "(nobody)"
_PROCESS_ID_CHARACTERS: Final = 8


def status_rows(status: ApplicationStatus) -> list[list[str]]:
    """A row for each stream thread, and one for the tasks that nobody has."""
    rows = [
        [
            _name(member),
            member.host,
            _tasks(member.tasks),
            _tasks(member.standbys),
            _lag(status, member.tasks),
        ]
        for member in status.members
    ]
    if status.unassigned:
        rows.append([_NOBODY, "", _tasks(status.unassigned), "", _lag(status, status.unassigned)])
    return rows


def lag_rows(status: ApplicationStatus) -> list[list[str]]:
    """A row for each partition that the application reads."""
    names = {member.thread: _name(member) for member in status.members}
    return [
        [
            one.partition.topic,
            str(one.partition.partition),
            str(one.task_id),
            _NOBODY if one.thread is None else names[one.thread],
            "-" if one.committed is None else str(one.committed),
            str(one.end),
            f"{one.lag:,}",
        ]
        for one in status.inputs
    ]


def headline(status: ApplicationStatus, place: str, rate: float | None) -> str:
    """The state in one line; ``rate`` is the number of records that are committed in a second (None: not known)."""
    if not status.members:
        return (
            f"{status.application_id} does not run on {place}: its group has no members. {_waiting(status)}."
        )
    processes = len({member.process_id or member.thread for member in status.members})
    state = "is rebalancing" if status.rebalancing else "runs"
    speed = "" if rate is None else f", {rate:,.0f} are committed in a second"
    return (
        f"{status.application_id} {state} on {place}: {_count(len(status.members), 'thread')} in "
        f"{_count(processes, 'process', 'processes')}, {_count(len(status.tasks), 'task')}. "
        f"{_waiting(status)}{speed}."
    )


def warnings(status: ApplicationStatus) -> Iterable[str]:
    """What is not as it should be."""
    others = [member.thread for member in status.members if member.same_program is False]
    if others:
        yield (
            f"Another version of the program runs in {listing(others)}: tasks are shown as this version has them."
        )
    if status.members and status.unassigned and not status.rebalancing:
        yield f"Nobody has {listing(map(str, status.unassigned))}."


def status_json(status: ApplicationStatus, place: str) -> dict[str, Any]:
    """All of it, with the fields of ``ApplicationStatus``."""
    return {
        "application_id": status.application_id,
        "log": place,
        "rebalancing": status.rebalancing,
        "lag": status.lag,
        "threads": [_member_json(status, member) for member in status.members],
        "unassigned": [str(task) for task in status.unassigned],
        "inputs": [_input_json(one) for one in status.inputs],
    }


def as_line(content: dict[str, Any]) -> str:
    """JSON in one line, so that a program can read one state after the other."""
    return json.dumps(content, ensure_ascii=False)


def _member_json(status: ApplicationStatus, member: MemberStatus) -> dict[str, Any]:
    return {
        "thread": member.thread,
        "process_id": member.process_id,
        "host": member.host,
        "tasks": [str(task) for task in member.tasks],
        "standbys": [str(task) for task in member.standbys],
        "same_program": member.same_program,
        "lag": status.lag_of(member.tasks),
    }


def _input_json(one: InputStatus) -> dict[str, Any]:
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "task": str(one.task_id),
        "thread": one.thread,
        "committed": one.committed,
        "end": one.end,
        "lag": one.lag,
    }


def _name(member: MemberStatus) -> str:
    """The thread's name, with the beginning of its process' id: all of it would fill half of a line."""
    short = member.process_id[:_PROCESS_ID_CHARACTERS]
    return member.thread.replace(member.process_id, f"{short}…") if short else member.thread


def _tasks(tasks: Iterable[TaskId]) -> str:
    """Their ids; ``0_3..7`` are five tasks."""
    stretches: list[list[TaskId]] = []
    for task in tasks:
        before = stretches[-1][-1] if stretches else None
        if before is not None and before._replace(partition=before.partition + 1) == task:
            stretches[-1].append(task)
        else:
            stretches.append([task])
    return " ".join(map(_stretch, stretches)) or "-"


def _stretch(tasks: list[TaskId]) -> str:
    return str(tasks[0]) if len(tasks) == 1 else f"{tasks[0]}..{tasks[-1].partition}"


def _lag(status: ApplicationStatus, tasks: Iterable[TaskId]) -> str:
    return f"{status.lag_of(frozenset(tasks)):,}"


def _waiting(status: ApplicationStatus) -> str:
    match status.lag:
        case 0:
            return "No record waits"
        case 1:
            return "1 record waits"
        case lag:
            return f"{lag:,} records wait"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
