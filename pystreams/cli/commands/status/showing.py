"""The status of an application as tables for people, and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pystreams.nearest import listing
from pystreams.plural import counted
from pystreams.times import show_duration

if TYPE_CHECKING:
    from pystreams.cli.commands.status.instances import Restore
    from pystreams.cli.commands.status.look import StatusLook
    from pystreams.ids import TaskId
    from pystreams.runtime.group.application_status import ApplicationStatus, InputStatus, MemberStatus

STATUS_COLUMNS: Final = ("thread", "host", "tasks", "standbys", "lag")
LAG_COLUMNS: Final = ("topic", "partition", "task", "thread", "committed", "end", "lag")

_NOBODY: Final = "(nobody)"
_PROCESS_ID_CHARACTERS: Final = 8
_FINGERPRINT_CHARACTERS: Final = 8


def status_rows(look: StatusLook) -> list[list[str]]:
    """A row for each stream thread, and one for the tasks that no thread has."""
    status = look.status
    rows = [
        [
            short_name(member),
            member.host,
            listed_tasks(member.tasks),
            listed_tasks(member.standbys),
            _lag(status, member.tasks),
        ]
        for member in status.members
    ]
    if status.unassigned:
        rows.append([_NOBODY, "", listed_tasks(status.unassigned), "", _lag(status, status.unassigned)])
    return rows


def lag_rows(look: StatusLook) -> list[list[str]]:
    """A row for each partition that the application reads."""
    status = look.status
    names = {member.thread: short_name(member) for member in status.members}
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


def headline(look: StatusLook, rate: float | None) -> str:
    """The state in one line; ``rate`` is the number of records that are committed in a second (None: not known)."""
    status, place = look.status, look.place
    if not status.members:
        return (
            f"{status.application_id} does not run on {place}: its group has no members. {_waiting(status)}."
        )
    state = "is rebalancing" if status.rebalancing else "runs"
    speed = "" if rate is None else f", {rate:,.0f} are committed in a second"
    return (
        f"{status.application_id} {state} on {place}: {counted(len(status.members), 'thread')} in "
        f"{counted(status.processes, 'process', 'processes')}, {counted(len(status.tasks), 'task')}. "
        f"{_waiting(status)}{speed}."
    )


def warnings(status: ApplicationStatus) -> Iterable[str]:
    """Warnings about everything that is not as it should be."""
    others = [member.thread for member in status.members if member.same_program is False]
    if others:
        yield (
            f"Another version of the program runs in {listing(others)}: tasks are shown as this version has them."
        )
    if status.members and status.unassigned and not status.rebalancing:
        yield f"Nobody has {listing(map(str, status.unassigned))}."


def instance_notes(look: StatusLook) -> Iterator[str]:
    """The versions that run, and how far restores are."""
    yield from _version_lines(look.status)
    yield from (_restore_line(restore) for restore in look.restores)
    for url, why in look.instances.silent.items():
        yield f"{url} does not say whether it restores: {why}."


def _version_lines(status: ApplicationStatus) -> Iterator[str]:
    threads: dict[str, list[str]] = {}
    for member in status.members:
        threads.setdefault(_versions(member), []).append(short_name(member))
    for versions, names in threads.items():
        yield f"{versions}." if len(threads) == 1 else f"{versions}: {listing(names)}."


def _versions(member: MemberStatus) -> str:
    program = (
        f"program {member.fingerprint[:_FINGERPRINT_CHARACTERS]}" if member.fingerprint else "program unknown"
    )
    if not member.pystreams:
        return f"Version of pystreams unknown, {program}"
    return f"pystreams {member.pystreams}, Python {member.python}, {program}"


def _restore_line(restore: Restore) -> str:
    left = f"{restore.task} restores {listing(restore.stores)}: {counted(restore.remaining, 'record')} left"
    if restore.rate is not None:
        left += f", {restore.rate:,.0f} in a second"
    return left + ("." if restore.eta_s is None else f", about {show_duration(max(1, restore.eta_s))} to go.")


def status_json(look: StatusLook) -> dict[str, Any]:
    """All of it, with the fields of ``ApplicationStatus``."""
    status = look.status
    return {
        "application_id": status.application_id,
        "log": look.place,
        "rebalancing": status.rebalancing,
        "lag": status.lag,
        "threads": [_member_json(look, member) for member in status.members],
        "unassigned": [str(task) for task in status.unassigned],
        "inputs": [_input_json(one) for one in status.inputs],
    }


def as_line(content: dict[str, Any]) -> str:
    """JSON in one line, so that a program can read one state after the other."""
    return json.dumps(content, ensure_ascii=False)


def _member_json(look: StatusLook, member: MemberStatus) -> dict[str, Any]:
    return {
        "thread": member.thread,
        "process_id": member.process_id,
        "host": member.host,
        "tasks": [str(task) for task in member.tasks],
        "standbys": [str(task) for task in member.standbys],
        "same_program": member.same_program,
        "fingerprint": member.fingerprint or None,
        "pystreams": member.pystreams or None,
        "python": member.python or None,
        "lag": look.status.lag_of(member.tasks),
        "restoring": _restoring_json(look, member.thread),
    }


def _restoring_json(look: StatusLook, thread: str) -> list[dict[str, Any]] | None:
    """None: its instance does not say."""
    if thread not in look.instances.threads:
        return None
    return [
        {
            "task": one.task,
            "stores": list(one.stores),
            "remaining": one.remaining,
            "records_per_s": None if one.rate is None else round(one.rate),
            "eta_s": None if one.eta_s is None else round(one.eta_s),
        }
        for one in look.restores
        if one.thread == thread
    ]


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


def short_name(member: MemberStatus) -> str:
    """The thread's name, with the beginning of its process' id: all of it would fill half of a line."""
    short = member.process_id[:_PROCESS_ID_CHARACTERS]
    return member.thread.replace(member.process_id, f"{short}…") if short else member.thread


def listed_tasks(tasks: Iterable[TaskId]) -> str:
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
