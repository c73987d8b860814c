"""The last commits of tasks, as the group has them: the offsets at which tasks continue, and a check whether these are
still the last.

The coordinator of a group may answer with old offsets, or without any, while it loads them. (Kafka 4.3 takes the end of
the load of one epoch for that of another: ``CoordinatorRuntime``.) A task that began at such offsets would repeat
committed work. So the offsets are compared with the newest that this process has seen. They are read again before a
task begins, and before its first commit: until then nothing that it has done is final.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from pystreams.broker.port import CommittedOffset, Member
from pystreams.errors import BrokerUnavailableError, TaskMigratedError, TopicError
from pystreams.ids import TopicPartition
from pystreams.runtime.tasks.active_task import ActiveTask


class NewestOffsets:
    """The highest committed offset of each partition that this process has seen. All of its threads share it."""

    def __init__(self) -> None:
        self._offsets: dict[TopicPartition, int] = {}

    def saw(self, partition: TopicPartition, committed: CommittedOffset) -> None:
        self._offsets[partition] = max(self._offsets.get(partition, 0), committed.offset)

    def is_older(self, partition: TopicPartition, committed: CommittedOffset | None) -> bool:
        """Whether an answer of the group is older than an earlier answer."""
        return (0 if committed is None else committed.offset) < self._offsets.get(partition, 0)


class LastCommits:
    """Reads and compares the last commits of the tasks of one thread.

    Its methods raise ``BrokerUnavailableError`` if the group does not answer, or answers with offsets that are too old,
    and ``TopicError`` if the offsets are gone because a topic was deleted.
    """

    def __init__(self, member: Member, newest: NewestOffsets, topics: Callable[[], Collection[str]]) -> None:
        """``topics`` lists the existing topics: when a topic is deleted, its offsets are deleted, too."""
        self._member = member
        self._newest = newest
        self._topics = topics

    def find(self, tasks: Collection[ActiveTask]) -> None:
        """Read the last commits of tasks, at which they are to continue."""
        committed = self._read(tasks)
        for task in tasks:
            task.last_commit = {p: committed[p] for p in task.inputs if p in committed}

    def changed(self, tasks: Collection[ActiveTask]) -> list[ActiveTask]:
        """The tasks whose committed offsets in the group differ by now from those that their thread knows."""
        if not tasks:
            return []
        committed = self._read(tasks)
        return [
            task
            for task in tasks
            if task.last_commit != {p: committed[p] for p in task.inputs if p in committed}
        ]

    def require(self, tasks: Collection[ActiveTask]) -> None:
        """Raise ``TaskMigratedError`` if the group has other offsets for a task. Then either this process was frozen
        and has a successor, and the records that the successor has processed may be deleted; or the task began at an
        old offset."""
        for task in self.changed(tasks):
            raise TaskMigratedError(
                "The group has other offsets for a task than this process knows",
                where=f"task {task.task_id}",
                why="another member has gone on with it, or the group's coordinator was still loading its offsets when "
                "the task began",
                hint="this process joins the group again, and goes on where the group says",
            )

    def before_first(self, tasks: Sequence[ActiveTask]) -> None:
        """Call ``require`` for the tasks that are about to commit for the first time."""
        first = [task for task in tasks if not task.start_confirmed]
        self.require(first)
        for task in first:
            task.start_confirmed = True

    def saw(self, task: ActiveTask) -> None:
        """Note the last commit of a task that ends in this thread, because it may be opened again in this process."""
        for partition, committed in task.last_commit.items():
            self._newest.saw(partition, committed)

    def _read(self, tasks: Collection[ActiveTask]) -> dict[TopicPartition, CommittedOffset]:
        answer = self._member.committed([partition for task in tasks for partition in task.inputs])
        old = sorted(partition for partition, at in answer.items() if self._newest.is_older(partition, at))
        if old:
            self._require_topics({partition.topic for partition in old if answer[partition] is None})
            raise BrokerUnavailableError(
                "The group answers with older offsets than before, or without any",
                where=", ".join(map(str, old)),
                why="its coordinator may not have loaded all of them yet",
                hint="it is asked again; if the offsets were set back by hand, start this process again",
            )
        committed = {partition: at for partition, at in answer.items() if at is not None}
        for partition, at in committed.items():
            self._newest.saw(partition, at)
        return committed

    def _require_topics(self, names: Collection[str]) -> None:
        """Raise ``TopicError`` if one of these topics was deleted."""
        deleted = sorted(set(names).difference(self._topics())) if names else []
        if deleted:
            raise TopicError(
                f"Topic {deleted[0]!r} was deleted, and the group's offsets with it",
                where=", ".join(deleted),
                hint="create it again, then restart the application",
            )
