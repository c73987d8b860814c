"""The messages about workers."""

from __future__ import annotations

import signal
from collections.abc import Sequence

from pystreams.runtime.supervisor.worker import Failure, Worker, WorkerState


def describe_exit(exit_code: int) -> str:
    """``ended with exit code 3``, ``was killed by SIGKILL (...)``."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    reason = {
        "SIGKILL": " (kill -9, or the system had no memory left)",
        "SIGSEGV": " (a library crashed)",
        "SIGABRT": " (a library gave up)",
    }
    return f"was killed by {name}{reason.get(name, '')}"


def unexplained(worker: Worker, exit_code: int, last_lines: Sequence[str]) -> Failure:
    """The failure of a worker that ended without reporting a reason."""
    how = describe_exit(exit_code)
    if worker.killed_after_ms is not None and exit_code == -signal.SIGKILL:
        how = f"was killed by its supervisor, because it had not reported for {worker.killed_after_ms / 1000:g} s"
    return Failure(
        f"worker {worker.number} {how}",
        log="\n".join(last_lines),
        hint="--verbose shows its log",
        exit_code=exit_code if exit_code > 0 else 1,
    )


def restart_note(failure: Failure, number: int, ran_ms: float, delay_ms: float, *, reported: bool) -> str:
    """The message that a worker starts again. ``reported`` is True if the worker itself has reported its failure."""
    what = f"worker {number} failed: {failure.what}" if reported else failure.what
    lines = [f"{what}, after {ran_ms / 1000:.1f} s; it starts again in {delay_ms / 1000:.1f} s"]
    if reported:
        lines += [
            f"  {label}: {part}" for label, part in (("where", failure.where), ("why", failure.why)) if part
        ]
    elif failure.log:
        lines += ["  the end of its log:", *(f"    {line}" for line in failure.log.splitlines())]
    return "\n".join(lines)


def silence_note(worker: Worker, silence_ms: float) -> str:
    """The note about a worker that has not reported for a long time."""
    what = {
        WorkerState.STARTING: "has not begun to work: is the program's module slow to import?",
        WorkerState.RUNNING: "has not reported: it is stopped (SIGSTOP), or a function blocks the interpreter",
        WorkerState.STOPPING: "has not ended; a second Ctrl-C kills it",
    }[worker.state]
    return f"worker {worker.number}: for {silence_ms / 1000:g} s it {what}"


def kill_note(worker: Worker) -> str:
    """The note about a worker whose tasks the group has given to other members."""
    return (
        f"worker {worker.number} has not reported for {(worker.patience_ms or 0) / 1000:g} s: it is stopped (SIGSTOP), "
        "or a function blocks the interpreter; it is killed, so that other workers can open the state of its tasks"
    )


def idle_note(idle: Sequence[int], tasks: int) -> str:
    """The note about workers without a task."""
    one = len(idle) == 1
    who = f"worker {idle[0]} has" if one else f"workers {', '.join(map(str, idle))} have"
    work = "has one task" if tasks == 1 else f"has {tasks} tasks"
    return (
        f"{who} no task: with the partitions of its input topics the application {work}, and a task runs in one worker "
        f"at a time; {'it stands' if one else 'they stand'} by for a worker that dies"
    )
