"""``pystreams describe --late``: the steps that drop late records, their grace, and the numbers of dropped records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pystreams.cli.connection import open_admin, open_broker_of
from pystreams.cli.terminal.console import note, show_table
from pystreams.clock import SystemClock
from pystreams.ids import TaskId, TopicPartition
from pystreams.times import spell_ms

if TYPE_CHECKING:
    from pystreams.broker.port import CommittedOffset
    from pystreams.config import StreamsConfig
    from pystreams.engine.failures.lateness import LateRecords
    from pystreams.topology.built import BuiltTopology


def show_late(app: Any, config: StreamsConfig) -> None:
    """Print the table. The numbers are those of the last commits. Raises ``BrokerUnavailableError`` if the log is not
    there."""
    from pystreams.dsl.builder import build_topology

    built = build_topology(app, config)
    with open_broker_of(config) as broker, open_admin(broker) as admin:
        committed = admin.group_offsets(built.application_id)
    found = late_records(built, committed, SystemClock().now_ms())
    rows = list(late_rows(built, found))
    if not rows:
        note("No step drops late records.")
        return
    show_table(["step", "store", "grace", "too late", "late by", "grace needed"], rows)
    for late in found:
        if late.has_wrong_times:
            note(f"No grace would have kept all records of {late.where}: {late.remedy}")


def late_rows(built: BuiltTopology, found: Sequence[LateRecords]) -> Iterator[list[str]]:
    """A row for each step that drops late records. ``found`` are those of ``late_records``."""
    from pystreams.engine.failures.lateness import LateRecords
    from pystreams.runtime.catching_up.time_steps import time_steps

    late = {one.step: one for one in found}
    for sub in built.subtopologies:
        for node, grace_ms in time_steps(sub):
            if grace_ms is None and node.name not in late:
                continue
            records = late.pop(node.name, LateRecords(node.name))
            stores = ", ".join(node.stores)
            yield _row(records, stores, "-" if grace_ms is None else spell_ms(grace_ms))
    # Steps that keep the records of one side of a join, and steps of an earlier version of the program.
    yield from (_row(one, "", "-") for one in late.values())


def late_records(
    built: BuiltTopology, committed: Mapping[TopicPartition, CommittedOffset], now_ms: int
) -> list[LateRecords]:
    """The late records that all tasks have counted with their commits, by step. ``now_ms`` is the clock's time: no
    grace helps a task whose stream time is far ahead of it."""
    from pystreams.engine.failures.drop_counts import committed_late
    from pystreams.engine.failures.lateness import add_up, ahead_of_clock
    from pystreams.engine.offset_metadata import merge_committed

    by_task: dict[TaskId, dict[TopicPartition, CommittedOffset]] = defaultdict(dict)
    for partition, offset in committed.items():
        for sub in built.subtopologies:
            if sub.source_for(partition.topic) is not None:
                by_task[TaskId(sub.id, partition.partition)][partition] = offset
    tasks = [merge_committed(offsets) for offsets in by_task.values()]
    return add_up(
        late._replace(ahead_time=ahead_of_clock(task.stream_time, now_ms))
        for task in tasks
        for late in committed_late(task.own)
    )


def _row(late: LateRecords, store: str, grace: str) -> list[str]:
    if not late.records:
        return [late.step, store, grace, "0", "-", "-"]
    return [
        late.step,
        store,
        grace,
        f"{late.records:,}",
        spell_ms(late.late_ms),
        "-" if late.has_wrong_times else spell_ms(late.grace_ms),
    ]
