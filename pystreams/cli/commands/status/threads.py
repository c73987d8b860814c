"""The threads of an application as a table for people, and as JSON for programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pystreams.cli.commands.status.showing import listed_tasks, short_name
from pystreams.ids import TaskId
from pystreams.times import show_duration

if TYPE_CHECKING:
    from pystreams.cli.commands.status.look import StatusLook
    from pystreams.runtime.group.application_status import MemberStatus
    from pystreams.serving.threads import ThreadNow

THREAD_COLUMNS: Final = ("thread", "state", "tasks", "standbys", "now", "polled", "committed")

#: Stands for what an instance that does not answer would have said.
_UNKNOWN: Final = "?"

#: The activity of a thread in each part of its round.
_PARTS: Final = {
    "group": "asks the group",
    "poll": "waits",
    "process": "processes",
    "commit": "commits",
    "nothing": "-",
}


def thread_rows(look: StatusLook) -> list[list[str]]:
    """A row for each stream thread."""
    known = look.instances.threads
    return [_row(member, known.get(member.thread)) for member in look.status.members]


def silent_notes(look: StatusLook) -> Iterator[str]:
    """Notes about threads whose activity is not known, with the reason."""
    for url, why in look.instances.silent.items():
        yield f"{url} does not say what its threads are at: {why}."
    if not look.instances.clients and not look.instances.silent and look.status.members:
        yield "No instance says what its threads are at: run them with --http, or name one with --url."
    elif look.instances.clients and not look.instances.silent and _is_any_unknown(look):
        yield f"A process whose threads have {_UNKNOWN} does not answer now, or runs without --http."


def _is_any_unknown(look: StatusLook) -> bool:
    known = look.instances.threads
    return any(member.thread not in known for member in look.status.members)


def _row(member: MemberStatus, now: ThreadNow | None) -> list[str]:
    name = short_name(member)
    if now is None:
        tasks, standbys = listed_tasks(member.tasks), listed_tasks(member.standbys)
        return [name, _UNKNOWN, tasks, standbys, _UNKNOWN, _UNKNOWN, _UNKNOWN]
    return [
        name,
        now.state.replace("_", " "),
        _tasks(now),
        listed_tasks(TaskId.parse(task) for task in now.standbys),
        _doing(now),
        _ago(now.polled_ms),
        _ago(now.committed_ms),
    ]


def _tasks(now: ThreadNow) -> str:
    """Those that run, and then the others with their states."""
    by_state: dict[str, list[TaskId]] = defaultdict(list)
    for one in now.tasks:
        by_state[one.state].append(TaskId.parse(one.task))
    running = by_state.pop("running", [])
    others = [f"{listed_tasks(tasks)} ({state})" for state, tasks in sorted(by_state.items())]
    return ", ".join([listed_tasks(running), *others] if running or not others else others)


def _doing(now: ThreadNow) -> str:
    what = _PARTS.get(now.part, now.part)
    if now.task is not None:
        what += f" {now.task}"
    # A part of a round takes a fraction of a second when all is well.
    return (
        what
        if now.part_ms < 1000 or now.part == "nothing"
        else f"{what} for {show_duration(now.part_ms / 1000)}"
    )


def _ago(ms: float | None) -> str:
    if ms is None:
        return "never"
    return f"{ms / 1000:.1f} s ago" if ms < 10_000 else f"{show_duration(ms / 1000)} ago"


def threads_json(look: StatusLook) -> dict[str, Any]:
    """All of it; ``now`` is None where an instance does not answer, and has the fields of ``/threads`` elsewhere."""
    import msgspec

    known = look.instances.threads
    return {
        "application_id": look.status.application_id,
        "log": look.place,
        "rebalancing": look.status.rebalancing,
        "threads": [
            {
                "thread": member.thread,
                "process_id": member.process_id,
                "host": member.host,
                "tasks": [str(task) for task in member.tasks],
                "standbys": [str(task) for task in member.standbys],
                "now": msgspec.to_builtins(known[member.thread]) if member.thread in known else None,
            }
            for member in look.status.members
        ],
        "silent": dict(look.instances.silent),
    }
