"""The error of a client that could not close in time. It names the uncommitted tasks and the work that blocks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pystreams.errors import CloseTimeoutError, StreamsError
from pystreams.ids import TaskId
from pystreams.runtime.threads.activity import COMMIT, GROUP, POLL, PROCESS, Activity
from pystreams.runtime.threads.progress import ThreadProgress

_WORDS = {
    GROUP: "asks the group or opens tasks",
    POLL: "waits for the log",
    PROCESS: "processes",
    COMMIT: "commits",
}


def close_timeout(
    timeout_ms: float, threads: Sequence[ThreadProgress], activities: Mapping[str, Activity]
) -> CloseTimeoutError:
    """The error. ``threads`` are the threads that have not ended; ``activities`` has their activities by name."""
    tasks = sorted(
        # The list of tasks that a thread has published may be older than its present task.
        {task.task_id for thread in threads for task in thread.tasks}
        | {TaskId.parse(activity.task) for activity in activities.values() if activity.task is not None}
    )
    listed = ", ".join(map(str, tasks))
    error = CloseTimeoutError(
        f"the last commit of {listed} was not done" if tasks else "the application has not ended",
        where=", ".join(thread.name for thread in threads),
        why=f"close_timeout_ms ({timeout_ms / 1000:g} s) is over"
        + "".join(f"; {_at_work(thread.name, activities)}" for thread in threads),
        hint="nothing is lost: the next start, or another instance, processes again what came after the last commit"
        if tasks
        else "raise close_timeout_ms if it needs more time",
    )
    error.threads_at_work = True
    return error


def with_unclosed(failure: BaseException, unclosed: CloseTimeoutError) -> BaseException:
    """The failure that ended a client, with the reason why the client did not close in time."""
    if isinstance(failure, StreamsError):
        failure.extend(why=f"{unclosed.what}: {unclosed.why}", hint=unclosed.hint)
        failure.threads_at_work = True
    else:
        failure.add_note(str(unclosed))
    return failure


def _at_work(name: str, activities: Mapping[str, Activity]) -> str:
    activity = activities.get(name, Activity())
    words = _WORDS.get(activity.part)
    if words is None:
        return f"{name} ends"
    if activity.task is not None:
        # In the part ``GROUP``, a task is at work only while it is being opened.
        words = f"{'opens' if activity.part == GROUP else words} {activity.task}"
    return f"{name} {words} for {activity.part_ms / 1000:.1f} s"
