"""Stores come back from their changelogs, and local state that does not fit is wiped, that task's alone."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pystreams.app import App
from pystreams.broker.port import CommittedOffset
from pystreams.ids import TopicPartition
from pystreams.record import RecordBatch
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.streams import Streams
from pystreams.runtime.tasks.task import TaskStatus
from pystreams.serde import INT, STR
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


MANY = 8


class HeldMidway(Held):
    """A consumer that gives the first half of what its first poll finds in each changelog, and then nothing before it
    may."""

    def __init__(self, inner: Any, go_on: threading.Event, holds: threading.Event) -> None:
        super().__init__(inner, go_on)
        self._holds = holds

    def poll(self, timeout_ms: float) -> list[RecordBatch]:
        if self._holds.is_set():
            return super().poll(timeout_ms)
        halves = [batch.before(batch.offsets[len(batch) // 2]) for batch in self._inner.poll(timeout_ms)]
        self._inner.seek({TopicPartition(half.topic, half.partition): half.next_offset for half in halves})
        given = [half for half in halves if half.values]
        if given:
            self._holds.set()
        return given


class MidwayBroker(HoldingBroker):
    """``is_held`` is set when the restore of the client's thread is in the middle of changelogs."""

    def __init__(self, inner: Any, go_on: threading.Event) -> None:
        super().__init__(inner, go_on)
        self.is_held = threading.Event()

    def consumer(self, client_id: str, purpose: str = "main") -> Any:
        consumer = self._inner.consumer(client_id, purpose)
        restores = client_id.endswith("-restore-consumer")
        return HeldMidway(consumer, self._go_on, self.is_held) if restores else consumer


def two_stores(log: Log, state: str) -> App:
    """A number and a text for each key of ``many``."""
    app = log.app("both", state_dir=log.path / state)
    grouped = app.stream("many", key=str, value=int).group_by_key()
    grouped.count(name="counts")
    grouped.aggregate(str, lambda text, value: f"{text} {value}", name="texts", value=str)
    return app


def tasks_that_run(client: Streams) -> int:
    statuses = [task.status for thread in client.progress().threads for task in thread.tasks]
    return statuses.count(TaskStatus.RUNNING)


def contents(client: Streams) -> dict[tuple[str, int], dict[Any, Any]]:
    """What a client's stores have, by store and partition."""
    return {
        (store, partition): {key: found.value for key, found in answer.result}
        for store in ("counts", "texts")
        for partition, answer in client.store(store).answers(lambda one: list(one.all())).by_partition.items()
    }


def fold_of(log: Log) -> dict[tuple[str, int], dict[str, Any]]:
    """What the stores must have: the fold of the input of each partition."""
    read_key, read_value = STR.deserializer("many"), INT.deserializer("many")
    fold: dict[tuple[str, int], dict[str, Any]] = {}
    for partition in log.partitions("many"):
        counts, texts = Counter[str](), dict[str, str]()
        for line in log.lines(partition).values():
            assert line.key is not None
            assert line.value is not None
            key = read_key(line.key)
            counts[key] += 1
            texts[key] = f"{texts.get(key, '')} {read_value(line.value)}"
        fold["counts", partition.partition], fold["texts", partition.partition] = dict(counts), texts
    return fold


@pytest.mark.both_logs
def test_processes_that_join_while_others_restore_mix_no_changelogs(log: Log) -> None:
    log.create("many", partitions=MANY)
    log.write("many", [(f"k{i % 200}", i, i) for i in range(600)])
    run_to_the_end(log, two_stores(log, "state"))
    shutil.rmtree(log.path / "state")
    go_on = threading.Event()
    clients: list[Streams] = []
    try:
        for number in range(4):
            broker = MidwayBroker(log.broker, go_on)
            clients.append(Streams(two_stores(log, f"state-{number}"), broker=broker))
            clients[-1].start()
            eventually(broker.is_held.is_set, f"client {number} is in the middle of its restore")
        # What the second one leaves comes to those that are in the middle of others.
        clients[1].close()
        rest = [clients[0], *clients[2:]]
        eventually(lambda: sum(len(tasks_of(client)) for client in rest) == MANY, "all tasks have owners")
        assert not any(map(tasks_that_run, rest))
        go_on.set()
        eventually(lambda: sum(map(tasks_that_run, rest)) == MANY, "all tasks run")
        caught_up(clients[0])
        found = [contents(client) for client in rest]
    finally:
        go_on.set()
        for client in clients:
            client.close()
    assert all(found)
    assert sum(map(len, found)) == 2 * MANY
    assert {place: entries for one in found for place, entries in one.items()} == fold_of(log)
    assert not any(client.failure for client in clients)
