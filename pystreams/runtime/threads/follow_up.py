"""Decides when a thread asks for the next rebalance: when its warm-ups are filled, or after an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pystreams.clock import Clock, Deadline
from pystreams.ids import TaskId
from pystreams.runtime.group.membership_data import AssignmentInfo, unpack_tasks


class FollowUp:
    """The follow-up of one assignment. Source: StreamThread.maybeProbingRebalance; Kafka Streams waits for the time
    alone.

    The leader and this thread may know different lags. If the leader still awaits the same tasks although this thread
    has said that they are ready, only the time counts: otherwise the disagreement would rebalance the group without
    end. If the tasks became ready after the thread had sent its subscription, it asks again: the leader did not know,
    and a request for a rebalance is lost while the group is in one.
    """

    def __init__(
        self, info: AssignmentInfo, acceptable_lag: int, clock: Clock, before: FollowUp | None = None
    ) -> None:
        """``before`` is the follow-up of the last assignment."""
        self._awaited = frozenset(unpack_tasks(info.awaited))
        #: The awaited tasks that the leader should have found ready.
        self._said_before: frozenset[TaskId] = frozenset() if before is None else before._said & self._awaited
        #: The awaited tasks that this thread has last said to be ready.
        self._said: frozenset[TaskId] = frozenset()
        self._acceptable_lag = acceptable_lag
        self._deadline = Deadline(clock, info.follow_up_ms) if info.follow_up_ms else None
        self._asked = False

    def due(self, lags: Callable[[], Mapping[TaskId, int | None]]) -> bool:
        """Whether to ask for a rebalance now; True only once. ``lags`` gives the lag of each standby: how many records
        it lacks, None while that is not known."""
        if self._asked or not (self._awaited or self._deadline):
            return False
        if self._awaited != self._said_before and self._is_ready(lags):
            self._asked = True
        elif self._deadline is not None:
            self._asked = self._deadline.expired()
        return self._asked

    def subscribes(self, lags: Callable[[], Mapping[TaskId, int | None]]) -> None:
        """The thread sends its subscription, with the progress of its standbys."""
        self._said = self._awaited if self._is_ready(lags) else frozenset()

    def _is_ready(self, lags: Callable[[], Mapping[TaskId, int | None]]) -> bool:
        known = lags()
        return all(
            (lag := known.get(task)) is not None and lag <= self._acceptable_lag for task in self._awaited
        )
