"""What takers and fetchers need: a topology, a log's answers, a folder, tasks with stores."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from pystreams import App
from pystreams.broker.port import TopicDescription
from pystreams.clock import ManualClock
from pystreams.dsl.builder import build_topology
from pystreams.ids import TaskId, TopicPartition
from pystreams.metrics import Metrics
from pystreams.record import ContextCell, RecordBatch
from pystreams.runtime.snapshots.fetching import SnapshotFetcher
from pystreams.runtime.snapshots.fitting import Fitting
from pystreams.runtime.snapshots.taking import SnapshotTaker
from pystreams.state.disk.directory import StateDirectory
from pystreams.state.disk.rocksdb_memory import shared_resources
from pystreams.state.disk.scratch import Scratch
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.snapshots.manifest import Manifest, task_folder
from pystreams.state.snapshots.reading import find_manifests, read_manifest
from pystreams.state.task_stores import TaskStores

TASK = TaskId(0, 0)
CHANGELOG = TopicPartition("shop-counts-changelog", 0)
HOUR_MS = 3_600_000
INTERVAL_MS = 60_000


class Answers:
    """What an admin says of the changelog."""

    def __init__(self) -> None:
        self.id: str | None = "id-1"
        self.beginning, self.end = 0, 1_000
        self.config = {"cleanup.policy": "compact"}

    def topic_id(self, name: str) -> str | None:
        return self.id

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.beginning)

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, self.end)

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicDescription]:
        return {name: TopicDescription(name, 1, self.config) for name in names}


def counting(**settings: Any) -> App:
    app = App("shop")
    app.stream("in", key=str, value=str).group_by_key().count(name="counts", **settings)
    return app


class OpenTask:
    """A task with its stores; ``commit`` is as if it had written to its changelog up to an offset."""

    def __init__(self, task_id: TaskId, state: TaskStores) -> None:
        self.task_id, self.state = task_id, state

    def commit(self, offset: int, *keys: bytes) -> None:
        values = [bytes(8)] * len(keys)
        batch = RecordBatch(
            CHANGELOG.topic, 0, list(keys), values, [0] * len(keys), range(len(keys)), None, offset
        )
        self.state.restore("counts", batch)


class Client:
    """One client with a state directory of its own."""

    def __init__(
        self,
        path: Path,
        answers: Answers,
        clock: ManualClock,
        *,
        app: App | None = None,
        folder: SnapshotFolder | None = None,
        origin: str = "log",
        beginning: str | None = "b",
    ) -> None:
        app = app or counting()
        self.folder = folder or SnapshotFolder(str(path.parent / "snapshots"))
        self.directory = StateDirectory(path, "shop")
        self.built = build_topology(app, app.config)
        admin: Any = answers
        self.fitting = Fitting(self.built, admin, clock, lambda: origin, beginning)
        self.metrics, self.clock = Metrics(), clock
        self.scratch = Scratch(self.directory.path)
        self.fetcher = SnapshotFetcher(
            self.folder, self.fitting, self.scratch, self.directory, shared_resources(), clock, self.metrics
        )
        self.taker = SnapshotTaker(
            self.folder, self.fitting, self.scratch, clock, self.metrics, INTERVAL_MS, 2
        )
        self._open: list[OpenTask] = []

    def open(self) -> OpenTask:
        specs = self.built.subtopologies[0].stores
        state = TaskStores.open(
            self.directory.task_directory(TASK), specs, cell=ContextCell(), log_of=lambda _: None
        )
        self._open.append(OpenTask(TASK, state))
        return self._open[-1]

    def manifests(self) -> Sequence[Manifest]:
        of_task = task_folder("shop", TASK)
        return [read_manifest(self.folder, of_task, name) for name in find_manifests(self.folder, of_task)]

    def close(self) -> None:
        for task in self._open:
            task.state.close()
        self.taker.close()
        self.fetcher.close()
        self.scratch.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Hanging(SnapshotFolder):
    """Does not answer while it is not released."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.released = threading.Event()
        self.asked = threading.Event()

    def names(self, folder: str) -> dict[str, int]:
        self.asked.set()
        assert self.released.wait(60)
        return super().names(folder)
