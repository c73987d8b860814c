"""The order in which it is decided for each sub-topology whether those upstream of it have caught up.

Sub-topologies that write to each other's inputs (both sides of a foreign-key join) form one *stage*: none of them is
upstream of the other. There are no cycles between stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.catching_up.hold_back import hold_back_ms
from pystreams.runtime.catching_up.one_partition import of_one_partition
from pystreams.runtime.catching_up.subtopology_graph import upstream, writers
from pystreams.runtime.catching_up.time_steps import time_steps
from pystreams.topology.built import BuiltTopology

Stage: TypeAlias = frozenset[int]


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages that matter for stream time; empty if none has to wait."""

    #: Each stage after all stages upstream of it. Only stages with a waiting sub-topology, and those upstream of them.
    in_order: tuple[Stage, ...]
    #: By stage: the stages upstream of it, directly or indirectly.
    before: Mapping[Stage, frozenset[Stage]]
    #: How much older than its stream time the results of a stage can be, in ms.
    hold_back: Mapping[Stage, int]
    #: The sub-topologies whose stream time waits for those upstream of them, because steps in them, or further
    #: downstream, depend on it.
    waiting: frozenset[int]
    #: The stage of each sub-topology.
    of: Mapping[int, Stage]

    def hold_back_until(self, first: Stage, last: Stage) -> int:
        """How much older (ms) than the stream time of ``first`` the records can be that reach ``last`` from there: the
        sum along the longest way."""
        between = [
            stage
            for stage in self.in_order
            if stage != last and first in self.before[stage] and stage in self.before[last]
        ]
        longest = {first: self.hold_back[first]}
        for stage in between:
            arriving = max(longest[one] for one in self.before[stage] if one in longest)
            longest[stage] = arriving + self.hold_back[stage]
        return max(longest.values())


def stages_of(built: BuiltTopology, inputs: Mapping[TaskId, frozenset[TopicPartition]]) -> Stages:
    """The stages of a topology. ``inputs`` are those of all its tasks."""
    writers_of = writers(built)
    hold_back = {sub.id: hold_back_ms(sub) for sub in built.subtopologies}
    timed = frozenset(sub.id for sub in built.subtopologies if time_steps(sub))
    return order(writers_of, hold_back, timed, of_one_partition(built, inputs, writers_of, hold_back))


def order(
    writers_of: Mapping[int, frozenset[int]],
    hold_back: Mapping[int, int],
    timed: frozenset[int],
    in_order: frozenset[int] = frozenset(),
) -> Stages:
    """The stages of sub-topologies. For each sub-topology, ``writers_of`` has those that write to its inputs, and
    ``hold_back`` the time (ms) for which it holds back results. ``timed`` are those with steps that depend on stream
    time, ``in_order`` those that need not wait, because all their records come from one partition."""
    before = {sub: upstream(writers_of, [sub]) for sub in writers_of}
    stage_of = {sub: frozenset({sub, *(one for one in before[sub] if sub in before[one])}) for sub in before}
    waiting = frozenset(
        sub
        for sub in before.keys() - in_order
        if before[sub] and (sub in timed or any(sub in before[one] for one in timed))
    )
    needed = waiting.union(*(before[sub] for sub in waiting))
    stages_before = {
        stage_of[sub]: frozenset(stage_of[one] for one in before[sub]) - {stage_of[sub]}
        for sub in sorted(needed)
    }
    return Stages(
        tuple(sorted(stages_before, key=lambda stage: len(stages_before[stage]))),
        stages_before,
        {stage: sum(hold_back[sub] for sub in stage) for stage in stages_before},
        waiting,
        {sub: stage_of[sub] for sub in needed},
    )
