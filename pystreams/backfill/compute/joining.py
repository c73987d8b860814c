"""Joins the staged outputs of a task's shares to the output of the task in one piece: see shares.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Protocol, TypeVar

from pystreams.backfill.compute.shares import By
from pystreams.backfill.compute.task import TaskWork, run_joined
from pystreams.backfill.exchange.order import QueueId, merged
from pystreams.backfill.exchange.rows import EXCHANGE_SCHEMA, Arrow, Kind, counted, pc
from pystreams.backfill.exchange.task_outcome import TaskOutcome
from pystreams.engine.failures.drop_counts import is_count
from pystreams.engine.failures.lateness import LateRecords, add_up
from pystreams.engine.failures.unmatched import add_up_unmatched
from pystreams.ids import TopicPartition

K = TypeVar("K")

_SEQUENCE = EXCHANGE_SCHEMA.get_field_index("sequence")
_QUEUE_TIME = EXCHANGE_SCHEMA.get_field_index("queue_time")


class StagedShare(Protocol):
    """The staged output of one share."""

    @property
    def outcome(self) -> TaskOutcome: ...

    def rows(self, kind: Kind, topic: str, partition: int) -> Iterator[Arrow]:
        """Records for a partition of a topic, or the entries of a store."""
        ...


def joined(
    work: TaskWork, task: int, shares: Sequence[StagedShare], by: By, work_dir: str
) -> Iterator[Arrow]:
    """The whole output of a task that was cut ``by``, as ``run_task`` gives it."""
    outcomes = [share.outcome for share in shares]
    outcome = _joined(outcomes)
    if by is By.RECORD:
        outcome = replace(
            outcome,
            records=sum(one.records for one in outcomes),
            partition_times=_latest([one.partition_times for one in outcomes]),
        )
    for partition in sorted(outcome.written):
        yield from (_records if by is By.KEY else _stretches)(partition, shares)
    entries = chain.from_iterable(
        share.rows(Kind.STATE, store, task)
        for store in work.slice.stores
        for share in shares
        if share.outcome.stores[store].entries
    )
    yield from run_joined(work, task, entries, outcome, work_dir=work_dir)


def _records(partition: TopicPartition, shares: Sequence[StagedShare]) -> Iterator[Arrow]:
    """The records of all shares for a partition, numbered from 0."""
    queues: list[tuple[QueueId, Iterator[Arrow]]] = [
        ((partition.topic, number), share.rows(Kind.RECORD, *partition))
        for number, share in enumerate(shares)
        if partition in share.outcome.written
    ]
    start = 0
    for rows in merged(queues):
        yield _replaced(rows, _SEQUENCE, counted(start, rows.num_rows))
        start += rows.num_rows


def _stretches(partition: TopicPartition, shares: Sequence[StagedShare]) -> Iterator[Arrow]:
    """The records of all shares for a partition, one share after the other, with the numbers and times that they would
    have behind those of the shares before."""
    start, latest = 0, -1
    for share in shares:
        sequence, time = share.outcome.sequences.get(partition, (0, -1))
        if partition in share.outcome.written:
            for rows in share.rows(Kind.RECORD, *partition):
                yield _replaced(
                    _replaced(rows, _SEQUENCE, pc.add(rows.column(_SEQUENCE), start)),
                    _QUEUE_TIME,
                    pc.max_element_wise(rows.column(_QUEUE_TIME), latest),
                )
        start, latest = start + sequence, max(latest, time)


def _replaced(rows: Arrow, column: int, content: Arrow) -> Arrow:
    return rows.set_column(column, EXCHANGE_SCHEMA.field(column), content)


def _joined(outcomes: Sequence[TaskOutcome]) -> TaskOutcome:
    """The outcome of shares that have all read all records, and come to the same times."""
    reached: dict[TopicPartition, tuple[int, int]] = {}
    for partition, (sequence, time) in chain.from_iterable(one.sequences.items() for one in outcomes):
        before, latest = reached.get(partition, (0, time))
        reached[partition] = before + sequence, max(latest, time)
    return replace(
        outcomes[0],
        dropped=sum(one.dropped for one in outcomes),
        operator_state=_numbers([one.operator_state for one in outcomes]),
        sequences=reached,
        written=_added([one.written for one in outcomes]),
        store_times=_latest([one.store_times for one in outcomes]),
        left_out=_added([one.left_out for one in outcomes]),
        causes=_added([one.causes for one in outcomes]),
        late=tuple(_late(outcomes)),
        joins=tuple(add_up_unmatched(chain.from_iterable(one.joins for one in outcomes))),
    )


def _late(outcomes: Sequence[TaskOutcome]) -> Iterator[LateRecords]:
    late = list(chain.from_iterable(one.late for one in outcomes))
    read = {one.step: one.read for one in late}
    return (one._replace(read=read[one.step]) for one in add_up(late))


def _numbers(states: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The numbers that the steps remember."""
    found: dict[str, int] = {}
    for name, number in chain.from_iterable(state.items() for state in states):
        before = found.get(name)
        if before is None:
            found[name] = number
        else:
            found[name] = before + number if is_count(name) else max(before, number)
    return found


def _latest(times: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The times of a store's shares make up the time of the store."""
    found: dict[str, int] = {}
    for store, time in chain.from_iterable(of_share.items() for of_share in times):
        found[store] = max(time, found.get(store, time))
    return found


def _added(counts: Sequence[Mapping[K, int]]) -> dict[K, int]:
    total: Counter[K] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)
