"""The counts of the records that a task's steps drop: metrics, and numbers that are committed with the offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from pystreams.engine.failures.lateness import LateRecords
from pystreams.engine.offset_metadata import (
    LATE_GRACE_MS,
    LATE_MS,
    LATE_RECORDS,
    OWN_PREFIX,
    entry,
    entry_bytes,
)
from pystreams.engine.operator_memory import OperatorMemory
from pystreams.metrics import names
from pystreams.metrics.registry import Counter, Gauge, Metrics

#: The length of the text that is committed with an offset is limited (``offset.metadata.max.bytes``), and these numbers
#: are the least important ones. They are not committed if the entries of a task's steps would become longer than this.
_ENTRIES_BYTES_MAX: Final = 1_800


class _Gauges(NamedTuple):
    """The metrics of one step."""

    records: Counter
    late_ms: Gauge
    grace_ms: Gauge


class DropCounts:
    """``dropped`` is the metric of Kafka Streams. It counts a record for each of its windows that has closed, and each
    write that a store refuses. Except for refused writes of the program's own stores, the drops are counted by step,
    too. ``dead_letters`` counts the records that were written to the dead-letter topic. The numbers of late records are
    counted by step. Kafka Streams has neither of these two."""

    def __init__(self, metrics: Metrics, memory: OperatorMemory, **tags: object) -> None:
        self.dropped = metrics.counter(names.DROPPED_RECORDS, **tags)
        self._of_steps: dict[str, Counter] = {}
        self.dead_letters = metrics.counter(names.DEAD_LETTERS, **tags)
        self._metrics = metrics
        self._memory = memory
        self._tags = tags
        self._gauges: dict[str, _Gauges] = {}
        #: The numbers by step, including those of earlier runs.
        self._committed: dict[str, LateRecords] = {}

    def start(self) -> None:
        """Continue with the numbers of the last commit."""
        for late in committed_late(self._memory.at_last_commit):
            self._commit(late)

    def drop(self, step: str) -> None:
        """Count a record that a step drops."""
        self.dropped.add()
        of_step = self._of_steps.get(step)
        if of_step is None:
            tags = {**self._tags, "processor_node_id": step}
            of_step = self._of_steps[step] = self._metrics.counter(names.STEP_DROPPED_RECORDS, **tags)
        of_step.add()

    def late(self, step: str, records: int, late_ms: int, grace_ms: int) -> None:
        """Count records that were late by at most ``late_ms``, and would have needed a grace of ``grace_ms``."""
        gauges = self._gauges.get(step)
        if gauges is None:
            gauges = self._gauges[step] = self._new_gauges(step)
            self._commit_if_room(step)
        gauges.records.add(records)
        gauges.late_ms.set(max(gauges.late_ms.value, late_ms))
        gauges.grace_ms.set(max(gauges.grace_ms.value, grace_ms))
        if step in self._committed:
            self._committed[step] = self._committed[step].and_more(records, late_ms, grace_ms)

    def _new_gauges(self, step: str) -> _Gauges:
        tags = {**self._tags, "processor_node_id": step}
        return _Gauges(
            self._metrics.counter(names.LATE_RECORDS, **tags),
            self._metrics.gauge(names.LATENESS_MAX, **tags),
            self._metrics.gauge(names.GRACE_NEEDED_MAX, **tags),
        )

    def _commit_if_room(self, step: str) -> None:
        """Commit the numbers of a step that drops its first record."""
        if step in self._committed:
            return
        added = sum(entry_bytes(entry(step, name)) for name in (LATE_RECORDS, LATE_MS, LATE_GRACE_MS))
        if sum(map(entry_bytes, self._memory.values())) + added <= _ENTRIES_BYTES_MAX:
            self._commit(LateRecords(step))

    def _commit(self, late: LateRecords) -> None:
        """Commit the numbers of a step from now on."""
        committed, step = self._committed, late.step
        committed[step] = late
        self._memory.save(step, LATE_RECORDS, lambda: committed[step].records)
        self._memory.save(step, LATE_MS, lambda: committed[step].late_ms)
        self._memory.save(step, LATE_GRACE_MS, lambda: committed[step].grace_ms)


def committed_late(own: Mapping[str, int]) -> list[LateRecords]:
    """The late records of a task, by step, from the numbers that it has committed (``TaskMetadata.own``)."""
    steps = [step for name in own if (step := _step_of(name)) is not None]
    return [
        LateRecords(
            step,
            records=own[entry(step, LATE_RECORDS)],
            late_ms=own.get(entry(step, LATE_MS), 0),
            grace_ms=own.get(entry(step, LATE_GRACE_MS), 0),
        )
        for step in steps
    ]


def is_count(name: str) -> bool:
    """Whether an entry counts records. The others of a task are times and limits."""
    return _step_of(name) is not None


def _step_of(name: str) -> str | None:
    """The step of an entry that counts late records; None for other entries."""
    step = name.removeprefix(OWN_PREFIX).removesuffix(f"/{LATE_RECORDS}")
    return step if name == entry(step, LATE_RECORDS) else None
