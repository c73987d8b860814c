"""When an application has caught up: everything is committed, and stream time waits for nobody."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pystreams.broker.port import CommittedOffset
from pystreams.engine.offset_metadata import TIME_IN_FORCE, encode_committed, entry
from pystreams.ids import TaskId, TopicPartition
from pystreams.runtime.tasks.client_context import ClientContext

IN, BETWEEN, EMPTY = TopicPartition("in", 0), TopicPartition("between", 0), TopicPartition("in", 1)
INPUTS = {TaskId(0, 0): {IN}, TaskId(0, 1): {EMPTY}, TaskId(1, 0): {BETWEEN}}
ENDS = {IN: 10, BETWEEN: 4, EMPTY: 0}


def commits(*, end: int = 4, in_force: int | None = None) -> dict[TopicPartition, CommittedOffset]:
    own = {} if in_force is None else {entry(*TIME_IN_FORCE): in_force}
    return encode_committed({IN: 10}, {IN: 500}, {}, {}) | encode_committed(
        {BETWEEN: end}, {BETWEEN: 500}, own, {}
    )


def everything_is_committed(committed: dict[TopicPartition, CommittedOffset]) -> bool:
    admin = SimpleNamespace(
        end_offsets=lambda partitions: {p: ENDS[p] for p in partitions},
        beginning_offsets=lambda partitions: dict.fromkeys(partitions, 0),
        group_offsets=lambda group, **_: committed,
    )
    context: Any = SimpleNamespace(admin=admin, inputs=INPUTS, built=SimpleNamespace(application_id="app"))
    return ClientContext.everything_is_committed(context)


def test_all_inputs_are_committed_up_to_their_ends():
    assert everything_is_committed(commits())
    assert not everything_is_committed(commits(end=3))


def test_a_task_whose_stream_time_waits_still_has_results_to_write():
    assert not everything_is_committed(commits(in_force=400))
    assert everything_is_committed(commits(in_force=500))
