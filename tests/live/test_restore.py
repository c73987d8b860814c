"""Stores come back from their changelogs, and local state that does not fit is wiped, that task's alone."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from pystreams.broker.port import CommittedOffset
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.streams import Streams
from tests.live.restore_kit import Held, HoldingBroker, counting, with_listener
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually, run_to_the_end


@pytest.fixture(autouse=True)
def hundred(log: Log) -> None:
    log.create("in", "out", partitions=2)
    log.write("in", [(f"k{i % 7}", i, i) for i in range(100)])


def state_of(log: Log, task: str) -> Path:
    return log.path / "state" / "counting" / task


def changelog_ends(log: Log) -> dict[str, int]:
    partitions = log.partitions("counting-counts-changelog")
    return {str(p): end for p, end in log.admin.end_offsets(partitions).items()}


def test_state_that_is_at_hand_needs_no_restore(log: Log) -> None:
    run_to_the_end(log, counting(log))
    listener = with_listener(log, counting(log))
    assert set(listener.ended.values()) == {0}
    assert sorted(listener.started) == sorted((p, end, end) for p, end in changelog_ends(log).items())


def test_lost_state_comes_back_from_the_changelog(log: Log) -> None:
    run_to_the_end(log, counting(log))
    shutil.rmtree(log.path / "state")
    log.write("in", [("k0", 1, 1)])
    listener = with_listener(log, counting(log))
    assert all(start == 0 for _, start, _ in listener.started)
    assert sum(listener.ended.values()) >= 7
    assert log.table("out")["k0"] == 16


def test_a_store_in_memory_comes_back_at_every_start(log: Log) -> None:
    run_to_the_end(log, counting(log, persistent=False))
    log.write("in", [("k0", 1, 1)])
    listener = with_listener(log, counting(log, persistent=False))
    assert sum(listener.ended.values()) >= 7
    assert log.table("out")["k0"] == 16


def test_a_store_ahead_of_its_changelog_is_wiped_and_restored_and_only_that_one(log: Log) -> None:
    run_to_the_end(log, counting(log))
    ends = changelog_ends(log)
    # A log that lost its tail: the changelog is made anew with all but its last record in partition 0.
    kept = {
        partition: [(r.key, r.value, r.timestamp) for r in log.read("counting-counts-changelog")]
        for partition in (0,)
    }[0]
    assert kept
    log.admin.delete_topics(["counting-counts-changelog"])
    log.create("counting-counts-changelog", partitions=2, config={"cleanup.policy": "compact"})
    log.write(
        "counting-counts-changelog", [("other", 5, 1)] * ends["counting-counts-changelog-1"], partition=1
    )
    listener = with_listener(log, counting(log))
    starts = {partition: start for partition, start, _ in listener.started}
    assert starts == {
        "counting-counts-changelog-0": 0,
        "counting-counts-changelog-1": ends["counting-counts-changelog-1"],
    }


def test_damaged_files_are_wiped_and_restored(log: Log) -> None:
    run_to_the_end(log, counting(log))
    damaged = 0
    for current in state_of(log, "0_0").rglob("CURRENT"):
        current.write_bytes(b"garbage\n")
        damaged += 1
    assert damaged == 1
    log.write("in", [("k0", 1, 1), ("k1", 1, 1)])
    run_to_the_end(log, counting(log))
    assert (log.table("out")["k0"], log.table("out")["k1"]) == (16, 16)


def test_a_changelog_whose_tail_was_compacted_away_does_not_hold_the_restore_up(log: Log) -> None:
    run_to_the_end(log, counting(log))
    shutil.rmtree(log.path / "state")
    # All that is left of partition 0 is a hole before its end.
    partition = TopicPartition("counting-counts-changelog", 0)
    end = log.admin.end_offsets([partition])[partition]
    log.admin.delete_records({partition: end}).wait()
    listener = with_listener(log, counting(log))
    assert listener.ended["counting-counts-changelog-0"] == 0


def test_tasks_that_are_complete_run_while_another_is_restored(log: Log) -> None:
    run_to_the_end(log, counting(log))
    shutil.rmtree(state_of(log, "0_1"))
    go_on = threading.Event()
    streams = Streams(counting(log), broker=HoldingBroker(log.broker, go_on))
    streams.start()
    try:
        log.write("in", [("new", 1, 1)], partition=0)
        eventually(lambda: log.table("out").get("new") == 1, "the complete one works")
        assert streams.state is ClientState.REBALANCING
        go_on.set()
        caught_up(streams)
    finally:
        streams.close()


class Stuck(Held):
    """A consumer whose poll does not return before it may, as of a broker that accepts requests and never answers."""

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        self._go_on.wait(TIMEOUT_S)
        return self._inner.poll(timeout_ms)


class StuckBroker(HoldingBroker):
    holds = Stuck


def test_a_restore_that_hangs_stops_neither_other_tasks_nor_a_rebalance_nor_the_end(log: Log) -> None:
    run_to_the_end(log, counting(log))
    shutil.rmtree(state_of(log, "0_1"))
    go_on = threading.Event()
    streams = Streams(counting(log), broker=StuckBroker(log.broker, go_on))
    streams.start()
    try:
        log.write("in", [("new", 1, 1)], partition=0)
        eventually(lambda: log.table("out").get("new") == 1, "the complete one works")
        other = log.start(counting(log, state_dir=str(log.path / "other")))
        eventually(lambda: len(tasks_of(other)) == 1, "the other one gets a task")
        log.write("in", [("new", 1, 1)], partition=0)
        eventually(lambda: log.table("out").get("new") == 2, "work goes on after the rebalance")
        other.close()
        eventually(lambda: len(tasks_of(streams)) == 2, "the task comes back")
    finally:
        streams.close()
        assert not go_on.is_set()
        go_on.set()
    assert streams.failure is None


def tasks_of(streams: Streams) -> list[str]:
    return [str(task.task_id) for thread in streams.progress().threads for task in thread.tasks]


def test_what_operators_and_partitions_remember_is_committed_with_the_offsets(log: Log) -> None:
    from pystreams.engine.offset_metadata import OffsetMetadata

    run_to_the_end(log, counting(log))
    committed: dict[TopicPartition, CommittedOffset] = log.committed("counting")
    assert {p: c.offset for p, c in committed.items()} == log.admin.end_offsets(log.partitions("in"))
    times = [OffsetMetadata.decode(c.metadata).partition_time for c in committed.values()]
    assert max(times) == 99
