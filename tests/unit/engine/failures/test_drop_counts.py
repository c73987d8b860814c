"""The counts of late records are committed with the offsets, go on after a restart, and stay few."""

from __future__ import annotations

from pystreams.engine.failures.drop_counts import DropCounts, committed_late
from pystreams.engine.failures.lateness import LateRecords
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.engine.operator_memory import OperatorMemory
from pystreams.metrics import Metrics


def started(committed: dict[str, int]) -> tuple[DropCounts, OperatorMemory]:
    memory = OperatorMemory()
    memory.at_last_commit = committed
    counts = DropCounts(Metrics(), memory, task_id="0_0")
    counts.start()
    return counts, memory


def test_a_task_without_late_records_commits_nothing() -> None:
    _, memory = started({})
    assert memory.values() == {}


def test_the_numbers_go_on_where_the_last_commit_ended() -> None:
    counts, memory = started({})
    counts.late("COUNT", 2, 70, 50)
    counts.late("COUNT", 1, 60, 55)
    assert memory.values() == {"py/COUNT/late": 3, "py/COUNT/late_ms": 70, "py/COUNT/late_grace_ms": 55}
    counts, memory = started(memory.values())
    assert committed_late(memory.values()) == [LateRecords("COUNT", "", 3, 70, 55)]
    counts.late("COUNT", 1, 71, 3)
    assert committed_late(memory.values()) == [LateRecords("COUNT", "", 4, 71, 55)]


def test_other_numbers_of_steps_are_not_taken_for_theirs() -> None:
    assert committed_late({"py/COUNT/stream_time": 5, "py//time": 7, "late": 3, "py/late": 1}) == []


def test_the_committed_text_stays_small_however_many_steps_drop_records() -> None:
    counts, memory = started({})
    for step in range(100):
        counts.late(f"KSTREAM-AGGREGATE-{step:010}", 1, 1, 1)
    assert len(committed_late(memory.values())) == 11
    assert len(OffsetMetadata(0, memory.values()).encode()) < 2_500


def test_no_number_is_added_to_what_is_long_already() -> None:
    counts, memory = started({})
    for step in range(40):
        memory.save(f"KSTREAM-AGGREGATE-{step:010}", "stream_time", lambda: 7)
    before = memory.values()
    counts.late("COUNT", 1, 70, 50)
    assert memory.values() == before
