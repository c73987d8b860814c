"""Commits the tasks of a thread, in one commit because they share a producer.

last_commits          raises an error for a task that began at an old offset
member.confirm        raises an error if this member was replaced, as far as it can know
engine.commit         flushes caches, commits in the log, writes the stores
guard.check           corrects changelogs that another process has written to
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from pystreams.broker.port import Member, Producer
from pystreams.engine.commit import commit
from pystreams.runtime.tasks.active_task import ActiveTask
from pystreams.runtime.tasks.changelog_guard import ChangelogGuard
from pystreams.runtime.tasks.last_commits import LastCommits

#: The timeout of the request for the ends of changelogs before tasks are given up.
_LEAVE_TIMEOUT_MS: Final = 5_000.0

#: Called with the task at work (None: none is), so that a failure can name it.
Working = Callable[[ActiveTask | None], None]
#: Is open during each commit, so that other threads can see it.
Committing = Callable[[], AbstractContextManager[None]]


class Committer:
    """Commits the tasks of one thread."""

    def __init__(
        self,
        producer: Producer,
        member: Member,
        last_commits: LastCommits,
        working: Working,
        committing: Committing,
        guard: ChangelogGuard | None = None,
    ) -> None:
        """``guard`` is None if no other process can write to the changelogs."""
        self._producer = producer
        self._member = member
        self._last_commits = last_commits
        self._working = working
        self._committing = committing
        self._guard = guard

    def commit(self, tasks: Sequence[ActiveTask]) -> None:
        """Commit all work of ``tasks``, the running tasks of the thread, since the last commit.

        Raises the errors of the broker: ``BrokerUnavailableError`` (nothing is lost, try again), ``TaskMigratedError``,
        ``ProductionError``; and errors of flushing the caches.
        """
        with self._committing():
            self._last_commits.before_first(tasks)
            self._member.confirm()
            end_offsets = commit(tasks, self._producer, self._member, working=self._working)
            if self._guard is not None:
                self._guard.commit_needed = False
                self._guard.check(tasks, end_offsets)

    def leave_in_order(self, tasks: Sequence[ActiveTask]) -> None:
        """Check all changelogs, after a commit and before the tasks are given up. If some had to be corrected, commit
        the corrections."""
        if self._guard is not None and self._guard.check_all(tasks, _LEAVE_TIMEOUT_MS):
            self.commit(tasks)
