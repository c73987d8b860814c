"""A task of a slice may be cut into shares, so that a partition with most of the records keeps all cores busy.

Cut by key, each share runs as the task itself does, and reads all of its records, because stream time is that of all of
them; but it processes only those of its own keys. That is possible where records come in columns to a step that folds
(column_input.py): there, only stream time connects one key with another.

Cut by record, each share has a stretch of the records. That is possible where nothing connects one record with another:
in stateless steps before sinks, and before repartition topics that get partial aggregates of keys.

The results of the shares are joined (joining.py): to the stores of the task in bytes, and to the same records for each
key of a sink; of a task cut by key, records of different keys may come in another order.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from enum import Enum, auto
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np

from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.exchange.rows import Arrow, pc
from pystreams.backfill.plan.combining import behind_topics, sink_of
from pystreams.backfill.plan.dependencies import runs_processor
from pystreams.backfill.plan.slices import Slice
from pystreams.backfill.sources.ranges import InputRange
from pystreams.dsl.operators import stateless
from pystreams.dsl.operators.window_aggregate import WindowAggregate
from pystreams.engine.node_defaults import extractor_of
from pystreams.timestamps import RecordTimestamp
from pystreams.topology.built import SubTopology
from pystreams.topology.nodes import Node, ProcessorNode, SinkNode, SourceNode

#: A task with fewer records is not cut, because its result would not come sooner.
CUT_RECORDS: Final = 100_000

#: A task that has at most this multiple of the average number of records of a process is not cut, either.
_EVEN: Final = 1.2

#: Operations that know one record at a time, and whose effects are their results alone.
_RECORD_BY_RECORD: Final = (
    stateless.Forward,
    stateless.NotNullKey,
    stateless.AnyKey,
    stateless.Filter,
    stateless.Map,
    stateless.MapValues,
    stateless.SelectKey,
    stateless.FlatMap,
    stateless.FlatMapValues,
    stateless.Branch,
)


class NotCutError(Exception):
    """A task cannot be computed in shares. The text says why."""


class By(Enum):
    """What a share of a task has: some of its keys, or a stretch of its records."""

    KEY = auto()
    RECORD = auto()


class Cut(NamedTuple):
    """How a task is cut: into ``shares``."""

    shares: int
    by: By


class Share(NamedTuple):
    """One of the shares of a task."""

    number: int
    cut: Cut

    def has(self, keys: Arrow) -> Any:
        """For each key whether it belongs to this share of a task that is cut by key: an array."""
        encoded = keys.dictionary_encode()
        total = self.cut.shares
        mine = [zlib.crc32(key) % total == self.number for key in encoded.dictionary.to_pylist()]
        return np.array(mine, bool)[encoded.indices.to_numpy()]

    def stretch(self, batches: Iterable[Arrow], whole: InputRange) -> Iterator[Arrow]:
        """The rows of this share of a task that is cut by record. ``whole`` are the offsets that the task reads; rows
        ascend."""
        size = whole.end - whole.start
        first, end = (
            whole.start + size * number // self.cut.shares for number in (self.number, self.number + 1)
        )
        for rows in batches:
            offsets = rows.column("sequence")
            if offsets[0].as_py() >= end:
                return
            if offsets[-1].as_py() >= first:
                yield rows.filter(pc.and_(pc.greater_equal(offsets, first), pc.less(offsets, end)))


def shares_of(one: Slice, ranges: Collection[InputRange], processes: int) -> dict[int, int]:
    """The tasks of a slice that should be cut so that all processes have something to do until the end, each with the
    number of its shares."""
    if any(input.internal for input in one.inputs):
        return {}
    records = [records_of(one, task, ranges) for task in range(one.tasks)]
    even = sum(records) / processes
    return {
        task: min(processes, ceil(count / even))
        for task, count in enumerate(records)
        if count >= CUT_RECORDS and count > _EVEN * even
    }


def cut_by(
    loaded: LoadedApplication, one: Slice, folded: Collection[str], combined: Collection[str]
) -> By | None:
    """How the tasks of a slice can be cut; None: not at all. ``folded`` and ``combined`` are the steps that fold, and
    those that get partial aggregates. Whether a task can be cut by key shows when it runs (``NotCutError``)."""
    if _knows_one_record(loaded, one, combined):
        return By.RECORD
    return By.KEY if folded else None


def range_of(one: Slice, task: int, ranges: Collection[InputRange]) -> InputRange:
    """The offsets that a task with a single input reads."""
    (input,) = one.inputs
    return next(
        range for range in ranges if (range.partition.topic, range.partition.partition) == (input.topic, task)
    )


def records_of(one: Slice, task: int, ranges: Collection[InputRange]) -> int:
    """About how many records a task reads from outside, by its ranges of offsets."""
    topics = {input.topic for input in one.topics_of(task) if not input.internal}
    return sum(
        range.end - range.start
        for range in ranges
        if range.partition.partition == task and range.partition.topic in topics
    )


def _knows_one_record(loaded: LoadedApplication, one: Slice, combined: Collection[str]) -> bool:
    """Whether nothing connects one record of a task with another."""
    sub = loaded.built.subtopologies[one.subtopology]
    sources = [node for node in sub.nodes if isinstance(node, SourceNode)]
    return (
        len(one.inputs) == 1
        and not sub.stores
        and all(isinstance(extractor_of(source, loaded.config), RecordTimestamp) for source in sources)
        and all(map(_is_record_by_record, sub.nodes))
        and not _combines_windows(loaded, sub, combined)
    )


def _is_record_by_record(node: Node) -> bool:
    if isinstance(node, ProcessorNode):
        return not runs_processor(node) and isinstance(node.operation, _RECORD_BY_RECORD)
    # A function that chooses partitions may do so in turn.
    return not isinstance(node, SinkNode) or node.partitioner is None


def _combines_windows(loaded: LoadedApplication, sub: SubTopology, combined: Collection[str]) -> bool:
    """Whether partial aggregates of windows leave the sub-topology: which records are late depends on those before."""
    return any(
        isinstance(one.operation, WindowAggregate) and sink_of(loaded.built, one.topic) in sub.nodes
        for one in behind_topics(loaded.built)
        if one.node.name in combined
    )
