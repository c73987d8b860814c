"""An application whose tasks travel by snapshots: what it reads, what must come out, what each client restores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pystreams.ids import TopicPartition
from pystreams.runtime.streams import Streams
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.snapshots.reading import find_manifests
from tests.kafka.support import Cluster
from tests.live.counted_input import CountedInput
from tests.live.snapshot_worker import counting
from tests.live.support import TIMEOUT_S, Log, eventually

PARTITIONS = 2


class Input(CountedInput):
    """The input of the application that these tests run."""

    def __init__(self, log: Log) -> None:
        super().__init__(log, "travels", PARTITIONS)

    def changelog_ends(self) -> dict[int, int]:
        partitions = [TopicPartition("travels-counts-changelog", p) for p in range(PARTITIONS)]
        return {p.partition: end for p, end in self.log.admin.end_offsets(partitions).items()}


class Restores:
    """Where restores have begun, and how many records they have read, by partition."""

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}
        self.records: Counter[int] = Counter()

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        self.starts[partition.partition] = start

    def on_batch_restored(self, partition: TopicPartition, store: str, offset: int, records: int) -> None:
        self.records[partition.partition] += records

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None:
        """Counted batch by batch."""


def offsets_of(snapshots: Path) -> dict[int, int]:
    """The offset of the last snapshot of each partition."""
    folder = SnapshotFolder(str(snapshots))
    found = {p: find_manifests(folder, f"travels/0_{p}") for p in range(PARTITIONS)}
    return {p: names[0].offsets for p, names in found.items() if names}


def snapshots_of_everything(written: Input, snapshots: Path) -> None:
    """Wait for a snapshot of each task that lacks nothing."""
    ends = written.changelog_ends()
    eventually(lambda: offsets_of(snapshots) == ends, f"snapshots as of {ends}")


def servers_of(log: Log) -> list[str]:
    return [log.bootstrap_servers] if isinstance(log, Cluster) else []


@contextmanager
def client(log: Log, state: str, snapshots: Path, **settings: Any) -> Iterator[tuple[Streams, Restores]]:
    """A client that works exactly once, on Kafka as well."""
    servers = ",".join(servers_of(log))
    kafka = {"bootstrap_servers": servers, "processing_guarantee": "exactly_once_v2"}
    app = counting(log.path / state, str(snapshots), **(kafka if servers else {}), **settings)
    streams, restores = Streams(app, broker=None if servers else log.broker), Restores()
    streams.set_restore_listener(restores)
    streams.start()
    try:
        yield streams, restores
    finally:
        streams.close(1000 * TIMEOUT_S)
