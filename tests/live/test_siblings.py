"""Clients that share a state directory: each has names of its own, and a task that moves finds its state there."""

from __future__ import annotations

import inspect
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pystreams import App, Streams
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.errors import StateError
from pystreams.ids import TopicPartition
from pystreams.state.disk.worker_number import WorkerNumber
from tests.live.support import Log, caught_up, eventually, processed, running


class Restored:
    """How many records each changelog's restore has read."""

    def __init__(self) -> None:
        self.records: dict[TopicPartition, int] = {}

    def on_restore_start(self, partition, store, start_offset, end_offset) -> None:
        pass

    def on_batch_restored(self, partition, store, next_offset, records) -> None:
        pass

    def on_restore_end(self, partition, store, records) -> None:
        self.records[partition] = records


def counting(log: Log) -> App:
    app = log.app("counting")
    app.stream("in", key=str, value=int).group_by_key().count(name="counts").to_stream().to("out")
    return app


def start(log: Log, worker: int) -> tuple[Streams, Restored]:
    restored = Restored()
    streams = Streams(counting(log), broker=log.broker, worker=worker)
    streams.set_restore_listener(restored)
    log._stack.callback(streams.close, 30_000)
    streams.start()
    return streams, restored


def tasks(streams: Streams) -> int:
    return sum(len(thread.tasks) for thread in streams.progress().threads)


def test_a_task_that_moves_between_siblings_restores_nothing(log: Log) -> None:
    log.create("in", "out", partitions=4)
    log.write("in", [(f"k{i % 100}", 1, i) for i in range(5_000)])
    first, restored_by_first = start(log, 1)
    caught_up(first)
    second, restored_by_second = start(log, 2)
    running(second)
    eventually(lambda: tasks(first) == tasks(second) == 2, "the tasks are shared")
    eventually(lambda: len(restored_by_second.records) == 2, "the stores are open")
    assert set(restored_by_second.records.values()) == {0}
    log.write("in", [(f"k{i % 100}", 1, i) for i in range(1_000)])
    caught_up(second)
    assert first.close(30_000)
    eventually(lambda: len(restored_by_second.records) == 4, "all tasks have moved")
    assert set(restored_by_second.records.values()) == {0}
    assert set(restored_by_first.records.values()) == {0}
    log.write("in", [("k0", 1, 0)])
    processed(second, 1)
    caught_up(second)
    assert log.table("out")["k0"] == 61


def test_siblings_have_names_of_their_own_and_who_comes_back_has_its_old_one(log: Log) -> None:
    log.create("in", "out", partitions=2)

    def number(streams: Streams) -> str:
        (name,) = [thread.name for thread in streams.progress().threads]
        return name.split("-")[-3]

    first, second, third = (start(log, worker)[0] for worker in (1, 1, 5))
    assert [number(streams) for streams in (first, second, third)] == ["1", "2", "5"]
    assert first.close(30_000)
    assert number(start(log, 1)[0]) == "1"


class Named:
    """The embedded log; writes down the names under which static members join."""

    def __init__(self, inner: EmbeddedBroker) -> None:
        self.joined: list[Any] = []
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def member(self, *arguments: Any) -> Any:
        given = inspect.signature(self._inner.member).bind(*arguments)
        self.joined.append(given.arguments["instance_id"])
        return self._inner.member(*arguments)


def test_their_threads_are_static_members_under_names_of_their_own(log: Log) -> None:
    """They share their settings: in Java each would be host-1 and host-2."""
    log.create("in", "out")
    named = Named(log.broker)
    for worker in (1, 2):
        app = log.app("static", num_stream_threads=2, group_instance_id="host")
        app.stream("in", key=str, value=int).to("out")
        with closing(Streams(app, broker=named, worker=worker)) as streams:
            streams.start()
            running(streams)
    assert sorted(named.joined) == ["host-1-1", "host-1-2", "host-2-1", "host-2-2"]


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(StateError, match="file"):
        WorkerNumber(tmp_path / "file" / "app")


def test_a_number_is_free_again_when_it_is_released(tmp_path: Path) -> None:
    one, two = WorkerNumber(tmp_path), WorkerNumber(tmp_path)
    assert (one.number, two.number) == (1, 2)
    one.release()
    again = WorkerNumber(tmp_path)
    assert again.number == 1
    for held in (two, again):
        held.release()
