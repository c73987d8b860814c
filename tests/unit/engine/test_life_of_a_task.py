"""A task goes on where the last commit ended, and tells what to commit."""

from __future__ import annotations

import gc
import linecache
from typing import Any, ClassVar

import pytest

from pystreams.dsl.operators.base import ObjectOperation, Operator, OperatorEnvironment
from pystreams.dsl.operators.stateless import MapValues
from pystreams.engine.codegen import compile_nodes
from pystreams.engine.stream_task import PHASE_SUCCESSORS, Phase, Position
from pystreams.errors import TopologyError
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from tests.unit.engine.task_kit import Harness, fn, sink, source, step

IN = TopicPartition("in", 0)


class CountRecords(ObjectOperation):
    """Remembers how many records it has seen, from commit to commit."""

    def open(self, environment: OperatorEnvironment) -> Operator:
        count = environment.load_state("count", 0)
        environment.save_state("count", lambda: count)
        forward = environment.forward

        def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
            nonlocal count
            count += 1
            if value == "drop":
                environment.drop("told to")
            elif value == "fail":
                raise ValueError("told to")
            else:
                forward(key, f"{value}{count}", timestamp, headers)

        return Operator(process)


def counting(**arguments: Any) -> Harness:
    return Harness([source(), step("count", "source", CountRecords()), sink("count")], **arguments)


def test_a_new_task_has_nothing_to_commit() -> None:
    harness = counting()
    assert harness.task.positions() == {}
    assert not harness.task.commit_needed
    assert harness.task.stream_time == -1


def test_the_position_is_the_next_offset_and_past_the_holes_at_the_end_of_a_batch() -> None:
    harness = counting()
    harness.task.add_batch(RecordBatch("in", 0, [None] * 3, [b"a"] * 3, [5, 9, 7], [10, 12, 15], None, 20))
    harness.process(1)
    assert harness.task.positions() == {IN: (11, 5)}
    harness.process(1)
    assert harness.task.positions() == {IN: (13, 9)}
    harness.process(1)
    assert harness.task.positions() == {IN: (20, 9)}
    assert harness.task.commit_needed
    harness.task.after_commit()
    assert not harness.task.commit_needed


def test_a_task_finds_its_times_and_its_operators_memory_again() -> None:
    first = counting()
    first.run(("k", "a", 40), ("k", "b", 30))
    state = first.task.operator_state()
    assert state == {"py/count/count": 2}
    second = counting(committed=first.task.positions(), operator_state=state)
    assert second.task.stream_time == 40
    assert second.task.partition_time(IN) == 40
    assert second.task.positions() == {IN: Position(2, 40)}
    second.run(("k", "c", 20))
    assert second.values() == ["c3"]
    assert second.task.stream_time == 40


def test_operators_drop_and_fail_in_the_name_of_their_step() -> None:
    harness = counting(processing_exception_handler="continue")
    harness.run(("k", "drop", 1), ("k", "fail", 2), ("k", "c", 3))
    assert harness.values() == ["c3"]
    assert harness.dropped() == 2


def test_partitions_pause_above_the_limit_and_resume_at_half_of_it() -> None:
    harness = counting(buffered_records_per_partition=10)
    record = ("k", "a", 1)
    harness.feed(*[record] * 10)
    assert harness.task.flow_changes() == ([], [])
    harness.feed(record)
    assert harness.task.buffered(IN) == 11
    assert harness.task.flow_changes() == ([IN], [])
    assert harness.task.flow_changes() == ([], [])
    harness.process(5)
    assert harness.task.flow_changes() == ([], [])
    harness.process(1)
    assert harness.task.flow_changes() == ([], [IN])


def test_a_task_processes_nothing_before_its_start_and_after_its_end() -> None:
    new = counting(started=False)
    assert new.task.head_time is None
    assert new.process() == 0
    new.task.start({}, {})
    new.feed(("k", "a", 1), ("k", "b", 2))
    assert new.task.head_time is not None
    assert new.process(1) == 1
    new.task.close()
    assert new.task.head_time is None
    assert new.process() == 0


def test_a_closed_task_stays_closed() -> None:
    harness = counting()
    harness.task.close()
    assert harness.task.phase is Phase.CLOSED
    for move in (lambda: harness.task.start({}, {}), harness.task.close):
        with pytest.raises(RuntimeError, match="cannot go from CLOSED"):
            move()


def test_every_phase_can_be_followed_by_the_end() -> None:
    assert set(PHASE_SUCCESSORS) == set(Phase)
    for phase, successors in PHASE_SUCCESSORS.items():
        assert (Phase.CLOSED in successors) == (phase is not Phase.CLOSED)


class Table(CountRecords):
    """Emits changes."""

    emits_changes: ClassVar[bool] = True


def test_streams_and_tables_cannot_be_mixed_up() -> None:
    upper = MapValues(fn(str))
    with pytest.raises(TopologyError, match="a stream and a table"):
        compile_nodes(
            [source(), step("t", "source", Table()), step("m", ("t", "source"), upper)], "<pystreams x>"
        )
    with pytest.raises(TopologyError, match="m works on a stream, but its parent is a table"):
        compile_nodes([source(), step("t", "source", Table()), step("m", "t", upper)], "<pystreams x>")


def test_the_generated_source_is_the_same_each_time_and_known_to_tracebacks() -> None:
    nodes = [source(), step("KSTREAM-MAPVALUES-0000000001", "source", MapValues(fn(str))), sink("source")]
    code, again = compile_nodes(nodes, "<pystreams same 0>"), compile_nodes(nodes, "<pystreams same 0>")
    assert code.source == again.source
    assert code.name == again.name
    gc.collect()
    linecache.checkcache()
    assert "".join(linecache.getlines(code.name)) == code.source


def test_two_applications_of_one_name_keep_their_own_lines() -> None:
    nodes = [source(), step("a", "source", MapValues(fn(str)))]
    others = [source(), step("b", "source", MapValues(fn(str)))]
    code, other = compile_nodes(nodes, "<pystreams twin 0>"), compile_nodes(others, "<pystreams twin 0>")
    assert code.name != other.name
    assert "".join(linecache.getlines(code.name)) == code.source
    assert "".join(linecache.getlines(other.name)) == other.source
