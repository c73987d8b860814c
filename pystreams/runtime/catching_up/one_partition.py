"""Finds the sub-topologies to which all records come from one single partition, in its order.

No other partition can be read ahead of that one, so their stream time needs no bound: while the application catches up,
it is the same as if the application had been running all the time.
"""

from __future__ import annotations

from collections.abc import Mapping

from pystreams.ids import TaskId, TopicPartition
from pystreams.topology.built import BuiltTopology, SubTopology


def of_one_partition(
    built: BuiltTopology,
    inputs: Mapping[TaskId, frozenset[TopicPartition]],
    writers_of: Mapping[int, frozenset[int]],
    hold_back: Mapping[int, int],
) -> frozenset[int]:
    """The sub-topologies that read only one repartition topic, under these conditions: only one task writes the topic,
    and this task reads only one partition, of the user's topic or of another such repartition topic. Nothing in the
    task delays results: no step holds them back, and no store has a cache. ``inputs`` are those of all tasks,
    ``hold_back`` is that of each sub-topology (ms)."""
    of_tasks: dict[int, list[int]] = {sub.id: [] for sub in built.subtopologies}
    for task, partitions in inputs.items():
        of_tasks[task.subtopology].append(len(partitions))

    def keeps_the_order(writer: SubTopology) -> bool:
        if of_tasks[writer.id] != [1] or hold_back[writer.id] or _may_cache(writer):
            return False
        return follows(writer) if writers_of[writer.id] else not writer.pattern_sources

    def follows(sub: SubTopology) -> bool:
        writers = [built.subtopologies[id] for id in writers_of[sub.id]]
        return len(writers) == 1 and _reads_one_repartition_topic(sub) and keeps_the_order(writers[0])

    return frozenset(sub.id for sub in built.subtopologies if follows(sub))


def _reads_one_repartition_topic(sub: SubTopology) -> bool:
    return len(sub.source_topics) == len(sub.repartition_source_topics) == 1 and not sub.pattern_sources


def _may_cache(sub: SubTopology) -> bool:
    """Whether a store of the sub-topology writes its results only with the next commit, if there is room in the cache.

    In a live run, these results are delayed by a commit interval at most. While the application catches up, one
    interval covers hours of event time: the results of a cache would be late behind results that do not pass through
    it. Even a single cache makes a difference: it keeps only the last result of each key, so other results, which would
    have advanced stream time in a live run, are never written.
    """
    return any(spec.cached for spec in sub.stores)
