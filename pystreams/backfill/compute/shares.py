"""A task of a slice may be cut by key into shares, so that a partition with most of the records keeps all cores busy.

Each share runs as the task itself does, and reads all of its records, because stream time is that of all of them; but
it processes only those of its own keys. That is possible where records come in columns to a step that folds
(column_input.py): there, only stream time connects one key with another. The results of the shares are joined
(joining.py): to the stores of the task in bytes, and to the same records for each key of a sink; records of different
keys may come in another order.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from math import ceil
from typing import Any, Final, NamedTuple

import numpy as np

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.plan.slices import Slice
from pystreams.backfill.sources.ranges import InputRange

#: A task with fewer records is not cut, because its result would not come sooner.
CUT_RECORDS: Final = 100_000

#: A task that has at most this multiple of the average number of records of a process is not cut, either.
_EVEN: Final = 1.2


class NotCutError(Exception):
    """A task cannot be computed in shares. The text says why."""


class Share(NamedTuple):
    """One of the shares of a task, ``total`` in all: the keys whose hash modulo ``total`` is ``number``."""

    number: int
    total: int

    def has(self, keys: Arrow) -> Any:
        """For each key whether it belongs to this share: an array."""
        encoded = keys.dictionary_encode()
        mine = [zlib.crc32(key) % self.total == self.number for key in encoded.dictionary.to_pylist()]
        return np.array(mine, bool)[encoded.indices.to_numpy()]


def shares_of(
    one: Slice, ranges: Collection[InputRange], folded: Collection[str], processes: int
) -> dict[int, int]:
    """The tasks of a slice that should be cut so that all processes have something to do until the end, each with the
    number of its shares. Whether a task can be cut shows when it runs (``NotCutError``)."""
    if not folded or any(input.internal for input in one.inputs):
        return {}
    records = [records_of(one, task, ranges) for task in range(one.tasks)]
    even = sum(records) / processes
    return {
        task: min(processes, ceil(count / even))
        for task, count in enumerate(records)
        if count >= CUT_RECORDS and count > _EVEN * even
    }


def records_of(one: Slice, task: int, ranges: Collection[InputRange]) -> int:
    """About how many records a task reads from outside, by its ranges of offsets."""
    topics = {input.topic for input in one.topics_of(task) if not input.internal}
    return sum(
        range.end - range.start
        for range in ranges
        if range.partition.partition == task and range.partition.topic in topics
    )
