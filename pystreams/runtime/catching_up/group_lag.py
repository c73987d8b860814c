"""Finds the tasks of the group that lag, and the stream time that the tasks downstream of them may reach.

The guarantee: if a record is late in its own input partition by no more than a step's grace, it is not late at that
step, however fast the partitions, tasks and processes upstream of the step are.

The reason: a task reads each of its inputs in order, and chooses between them by time. So when it has committed the
stream time T, all records that it reads later have a time of at least T, less the disorder of their own partition. The
records that it then emits have a time of at least T less its *hold-back*, and all records that it has emitted before
lie below the ends of the topics that are read after the commit. So a task downstream that has passed these ends may
advance to T less the hold-back. It takes the lowest of these *bounds* over all tasks upstream, at any distance, that
are not done. A task is done if

- it has processed and committed all records that it is *required* to (below), and
- no result is held back in it by a bound of its own: results that a bound releases are emitted before the commit that
  shows the bound.

The requirements:

- In a new generation of the group, a task is required to process all records that its inputs hold when they are first
  read. So a task that gets a new owner lags until the owner has committed all of this; so do all tasks of a new
  application whose topics already hold records.
- While a task upstream of it lags, it is required to process all records that have arrived from there. The last
  requirement is read after the commit with which the task upstream became *done*, so it includes all of its results.
- Later, with each commit, it is required to have processed the records that its inputs held ``LAG_MS`` before. The
  steady flow of a live application is at most that old when it is committed, so it requires nothing, however long the
  commit interval is.
- If nothing was committed for longer than commits can take, it is required to process everything.

The processes read the offsets of the group at different moments, so a task may lag for one process and not for another.
Therefore a process whose tasks nearly lag commits often, so that the others need not wait for its commit interval.

A sub-topology in a stage of several (see ``stages``) cannot wait until the others are done, because they wait for it,
too. It waits while they have required records to process. Each of them is required to process the records that the
others have emitted meanwhile, as many times as a record can go from one to the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from pystreams.broker.port import CommittedOffset
from pystreams.engine.offset_metadata import TaskMetadata, merge_committed
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.catching_up.spread import Pace, Spread
from pystreams.runtime.catching_up.stages import Stage, Stages
from pystreams.stream_time import NO_TIME, TIME_MAX

#: A task lags if it commits less than its inputs held this long before. With half of this time it is close to lagging.
LAG_MS: Final = 2_000.0
#: A commit may come later than its interval by this time.
COMMIT_DELAY_MS: Final = 5_000.0
#: Commits stay frequent for this time after a task was last close to lagging.
_AFTERWARDS_MS: Final = 10_000.0
_NOBODY_PAUSES: Final = Spread()


@dataclass(frozen=True, slots=True)
class Reading:
    """The group's committed offsets, and the ends of its inputs, which were read after the offsets.

    ``beginnings`` are those of the inputs without a committed offset. ``at_ms`` is monotonic.
    """

    at_ms: float
    committed: Mapping[TopicPartition, CommittedOffset]
    beginnings: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class LaggingTask:
    """A task that others wait for, or have given up waiting for. ``behind`` has the inputs of which it has not
    committed all required records, with the committed offsets. ``since_ms`` (monotonic): it has committed nothing new
    since then."""

    task_id: TaskId
    time_ms: int
    behind: Mapping[TopicPartition, int]
    since_ms: float


@dataclass(frozen=True, slots=True)
class GroupView:
    """The consequences of a reading, which was made ``at_ms`` (monotonic)."""

    at_ms: float
    #: For each waiting sub-topology the stream time that its tasks may reach, once they have passed ``ends``.
    bounds: Mapping[int, int]
    ends: Mapping[TopicPartition, int]
    lagging: tuple[LaggingTask, ...]
    #: Lagging tasks that have committed nothing for a long time, so that others do not wait for them any more.
    given_up: tuple[LaggingTask, ...]
    #: Whether other tasks wait for commits.
    commit_often: bool
    spread: Spread = _NOBODY_PAUSES

    @property
    def lags(self) -> bool:
        """Whether any task lags that others wait for, or have waited for."""
        return bool(self.lagging or self.given_up)


def holds_time_back(commits: Mapping[TopicPartition, CommittedOffset]) -> bool:
    """Whether the stream time of a task waits for other tasks, by the metadata of its commits."""
    metadata = merge_committed(commits)
    return metadata.stream_time < metadata.time_seen


class GroupLag:
    """Derives from successive readings which tasks of a group lag."""

    def __init__(
        self,
        stages: Stages,
        inputs: Mapping[TaskId, frozenset[TopicPartition]],
        written: Mapping[int, Mapping[str, frozenset[int]]],
        *,
        commit_interval_ms: float,
        wait_max_ms: float,
        distance_ms_min: int,
        by_time: bool = True,
    ) -> None:
        """``inputs`` are those of all tasks. ``written`` has, for each sub-topology and each topic that it reads, the
        sub-topologies that write to the topic. ``distance_ms_min``: a task that is ahead by less does not pause (see
        ``spread``). ``by_time``: tasks process their inputs in the order of time, because they wait for records that
        are in the log (``max_task_idle_ms`` is not -1)."""
        self._stages = stages
        self._patience_ms = commit_interval_ms + COMMIT_DELAY_MS
        self._wait_max_ms = wait_max_ms
        self._of: dict[Stage, list[_Task]] = {stage: [] for stage in stages.in_order}
        for task_id, partitions in sorted(inputs.items()):
            stage = stages.of.get(task_id.subtopology)
            if stage is not None:
                self._of[stage].append(
                    _Task(task_id, stage, partitions, written[task_id.subtopology], by_time)
                )
        every = [task for tasks in self._of.values() for task in tasks]
        awaited = frozenset[Stage]().union(*stages.before.values())
        #: The tasks that others wait for.
        self._awaited = [
            task
            for stage in stages.in_order
            if stage in awaited or len(stage) > 1
            for task in self._of[stage]
        ]
        self._awaited_ids = frozenset(task.task_id for task in self._awaited)
        self._partitions = frozenset(p for task in every for p in task.partitions)
        self._between = frozenset(p for task in every for p in task.from_before | task.from_inside)
        #: By stage: whether a task upstream of it lagged at the last reading.
        self._waited = dict.fromkeys(stages.in_order, False)
        self._rounds = dict.fromkeys(stages.in_order, 0)
        self._way = {
            last: {first: stages.hold_back_until(first, last) for first in stages.before[last]}
            for last in stages.in_order
        }
        #: The ends of earlier readings, with their times.
        self._earlier: deque[tuple[float, Mapping[TopicPartition, int]]] = deque()
        self._often_until_ms = 0.0
        self._pace = Pace(distance_ms_min)
        self._spread = _NOBODY_PAUSES

    @property
    def awaited(self) -> frozenset[TaskId]:
        """The tasks that others may wait for."""
        return self._awaited_ids

    @property
    def waiting(self) -> frozenset[int]:
        """The sub-topologies whose stream time waits for other tasks."""
        return self._stages.waiting

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions to read."""
        return self._partitions

    @property
    def between(self) -> frozenset[TopicPartition]:
        """Those of the partitions to read that tasks write for other tasks."""
        return self._between

    def begin_generation(self) -> None:
        """Tasks may have new owners: all records up to the ends of the next reading are required."""
        for tasks in self._of.values():
            for task in tasks:
                task.new = True

    def update(self, reading: Reading) -> GroupView:
        """Evaluate the next reading."""
        pausing = self._spread.pausing()
        for stage in self._stages.in_order:
            self._judge(stage, reading, pausing)
        self._earlier.append((reading.at_ms, reading.ends))
        while len(self._earlier) > 1 and self._earlier[1][0] <= reading.at_ms - LAG_MS:
            self._earlier.popleft()
        self._spread = self._spread_at(reading.at_ms)
        if any(task.lags or task.nearly for task in self._awaited):
            self._often_until_ms = reading.at_ms + _AFTERWARDS_MS
        return GroupView(
            reading.at_ms,
            {sub: self._bound(self._stages.of[sub]) for sub in self._stages.waiting},
            reading.ends,
            tuple(task.described() for task in self._awaited if task.lags),
            tuple(task.described() for task in self._awaited if task.given_up),
            commit_often=reading.at_ms < self._often_until_ms,
            spread=self._spread,
        )

    def nobody_waits(self) -> GroupView:
        """A view in which no task waits for another one; it is in force at once."""
        return GroupView(0.0, dict.fromkeys(self.waiting, TIME_MAX), {}, (), (), commit_often=False)

    def _judge(self, stage: Stage, reading: Reading, pausing: Collection[TaskId]) -> None:
        """Find out which tasks of a stage lag, after all stages upstream of it. ``pausing`` are tasks that pause."""
        tasks, now_ms = self._of[stage], reading.at_ms
        waits = any(task.lags for one in self._stages.before[stage] for task in self._of[one])
        waited, self._waited[stage] = self._waited[stage], waits
        for task in tasks:
            task.read(reading)
            if task.new:
                task.require(task.partitions, reading.ends)
            if waits or waited:
                task.require(task.from_before, reading.ends)
            task.nearly = task.changed and task.is_below(self._ends_before(now_ms - LAG_MS / 2))
            if task.changed:
                task.require(task.partitions, self._ends_before(now_ms - LAG_MS))
            elif task.waits_for_commit(reading.ends, now_ms) > self._patience_ms:
                task.require(task.partitions, reading.ends)
            task.new = False
        if len(stage) > 1:
            self._circulate(stage, reading, started=waits or any(task.is_behind_outside() for task in tasks))
        for task in tasks:
            task.judge(now_ms, self._wait_max_ms, pauses=task.task_id in pausing)

    def _circulate(self, stage: Stage, reading: Reading, *, started: bool) -> None:
        """Require the records that the sub-topologies of a stage have emitted to each other. ``started``: records come
        from outside of the stage, and their results may go from one sub-topology to the next."""
        if started:
            self._rounds[stage] = len(stage)
        elif self._rounds[stage] and not any(task.behind for task in self._of[stage]):
            self._rounds[stage] -= 1
        else:
            return
        for task in self._of[stage]:
            task.require(task.from_inside, reading.ends)

    def _spread_at(self, now_ms: float) -> Spread:
        """How far apart tasks may be. Called when it is known which of them lag."""
        heads = {
            task.task_id: task.head_ms
            for task in self._awaited
            if task.lags and task.behind and task.head_ms is not None
        }
        distance_ms = self._pace.distance_ms(now_ms, min(heads.values(), default=None))
        may_pause = {
            task.task_id
            for tasks in self._of.values()
            for task in tasks
            if task.behind and task.reads_users_topics
        }
        return Spread(heads, frozenset(may_pause), distance_ms)

    def _ends_before(self, at_ms: float) -> Mapping[TopicPartition, int]:
        """The ends that were last read up to that time; empty if none were."""
        found: Mapping[TopicPartition, int] = {}
        for read_ms, ends in self._earlier:
            if read_ms > at_ms:
                break
            found = ends
        return found

    def _bound(self, stage: Stage) -> int:
        """The lowest time of the records that may still come from lagging tasks to the tasks of ``stage``."""
        times = [
            task.time_ms - self._way[stage][one]
            for one in self._stages.before[stage]
            for task in self._of[one]
            if task.lags
        ]
        if len(stage) > 1:
            # Tasks of the stage itself have no other bound if no stage is upstream. Then the highest time that they
            # have seen counts, because a stream time that waits for its own bound would never rise.
            bounded = bool(self._stages.before[stage])
            times += [
                (task.time_ms if bounded else task.seen_ms) - self._stages.hold_back[stage]
                for task in self._of[stage]
                if task.behind and not task.given_up
            ]
        return max(NO_TIME, min(times, default=TIME_MAX))


class _Task:
    """The state of one task, derived from its commits."""

    def __init__(
        self,
        task_id: TaskId,
        stage: Stage,
        partitions: frozenset[TopicPartition],
        written: Mapping[str, frozenset[int]],
        by_time: bool,
    ) -> None:
        self.partitions = partitions
        #: The inputs that sub-topologies of upstream stages write, and those that its own stage writes.
        writers = {p: written.get(p.topic, frozenset()) for p in partitions}
        self.from_before = frozenset(p for p in partitions if writers[p] - stage)
        self.from_inside = frozenset(p for p in partitions if writers[p] & stage)
        self.new = True
        #: Whether the task has committed since the last reading, and whether it was close to lagging then.
        self.changed = self.nearly = False
        #: Whether others wait for it, and whether others have given up waiting for it.
        self.lags = self.given_up = False
        #: The highest timestamp that it has seen.
        self.seen_ms = NO_TIME
        #: Only tasks that read topics of the user pause; the others only read results of these tasks.
        self.reads_users_topics = not partitions <= self.from_before | self.from_inside
        #: The time of its next record, if it is known.
        self.head_ms: int | None = None
        self.task_id = task_id
        self._by_time = by_time
        self._commits: dict[TopicPartition, CommittedOffset] = {}
        self._metadata = TaskMetadata({}, {}, {}, {})
        self._in_force_ms = NO_TIME
        self._offsets: dict[TopicPartition, int] = {}
        self._ends: Mapping[TopicPartition, int] = {}
        self._required: dict[TopicPartition, int] = {}
        #: The time (ms) since when it has had something to commit, and since when others have waited for its commit.
        self._uncommitted_ms: float | None = None
        self._stuck_ms: float | None = None

    def read(self, reading: Reading) -> None:
        """Evaluate the task's committed offsets."""
        committed = reading.committed
        commits = {p: committed[p] for p in self.partitions if p in committed}
        self.changed = commits != self._commits
        if self.changed:
            self._commits = commits
            metadata = self._metadata = merge_committed(commits)
            self._in_force_ms, self.seen_ms = metadata.stream_time, metadata.time_seen
            self.head_ms = metadata.head
            self._uncommitted_ms = self._stuck_ms = None
        self._ends = reading.ends
        self._offsets = {
            p: commits[p].offset if p in commits else reading.beginnings.get(p, 0) for p in self.partitions
        }
        # Ends shrink when a topic is made anew.
        self._required = {p: min(at, self._ends[p]) for p, at in self._required.items()}

    @property
    def time_ms(self) -> int:
        """The lowest time of the records that it reads later, apart from the disorder of a partition."""
        times = self._metadata.partition_times
        unordered = () if self._by_time else self.behind.keys() - self.from_before - self.from_inside
        return min([self._in_force_ms, *(times.get(p, NO_TIME) for p in unordered)])

    def require(self, partitions: frozenset[TopicPartition], ends: Mapping[TopicPartition, int]) -> None:
        """Require the task to commit these partitions up to ``ends``."""
        for partition in partitions & ends.keys():
            end = min(ends[partition], self._ends[partition])
            self._required[partition] = max(end, self._required.get(partition, 0))

    def is_below(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether it has committed less than ``ends``."""
        return any(self._offsets[p] < ends[p] for p in self.partitions & ends.keys())

    def waits_for_commit(self, ends: Mapping[TopicPartition, int], now_ms: float) -> float:
        """The time (ms) for which it has had something to commit and has not committed."""
        if not self.is_below(ends):
            self._uncommitted_ms = None
            return 0.0
        if self._uncommitted_ms is None:
            self._uncommitted_ms = now_ms
        return now_ms - self._uncommitted_ms

    @property
    def behind(self) -> dict[TopicPartition, int]:
        """The committed offsets of the inputs of which it has not committed all required records."""
        return {p: self._offsets[p] for p, at in self._required.items() if self._offsets[p] < at}

    def is_behind_outside(self) -> bool:
        """Whether it is behind in an input that its own stage does not write."""
        return not self.from_inside.issuperset(self.behind)

    def judge(self, now_ms: float, wait_max_ms: float, *, pauses: bool) -> None:
        """Decide whether others wait for the task. While it ``pauses``, it need not commit anything."""
        if not self.behind and self._in_force_ms == self.seen_ms:
            self._stuck_ms = None
            self.lags = self.given_up = False
            return
        if self._stuck_ms is None or pauses:
            self._stuck_ms = now_ms
        self.given_up = now_ms - self._stuck_ms >= wait_max_ms
        self.lags = not self.given_up

    def described(self) -> LaggingTask:
        assert self._stuck_ms is not None
        return LaggingTask(self.task_id, self.time_ms, self.behind, self._stuck_ms)
