"""The first start of an application on a machine without its state: from a snapshot, and from its changelog alone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pystreams.app import App
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.port import TopicSpec
from pystreams.ids import TopicPartition
from pystreams.runtime.client_state import ClientState
from pystreams.runtime.streams import Streams
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.snapshots.reading import find_manifests, read_manifest

_CHANGELOG: Final = TopicPartition("first-start-rows-changelog", 0)
_OF_TASK: Final = "first-start/0_0"
_TIMEOUT_S: Final = 3_600
#: Rows that change after the snapshot.
TAIL: Final = 1_000


@dataclass(frozen=True, slots=True)
class Start:
    """``records`` were read from the changelog until the application ran, ``seconds`` after its start."""

    way: str
    records: int
    seconds: float


class FirstStart:
    """A table of ``keys`` rows, each of which was written ``updates`` times, on an embedded log below ``folder``."""

    def __init__(self, folder: Path, keys: int, updates: int, value_bytes: int) -> None:
        self.folder = folder
        self.keys, self.updates, self.value_bytes = keys, updates, value_bytes
        self.snapshots = folder / "snapshots"
        #: Of the snapshot, once it is taken.
        self.snapshot_bytes = 0
        self.take_seconds = 0.0

    def app(self, state: str, snapshots: Path | None, interval_ms: int = 3_600_000) -> App:
        app = App(
            "first-start",
            state_dir=self.folder / state,
            state_snapshot_dir=snapshots,
            state_snapshot_interval_ms=interval_ms,
            poll_ms=10,
        )
        app.table("rows", key=bytes, value=bytes, name="rows")
        return app

    def prepare(self) -> None:
        """Write the rows, process them, take a snapshot, and change some rows."""
        source = random.Random(1)
        with closing(EmbeddedBroker(self.folder / "log.db")) as broker, closing(broker.admin()) as admin:
            admin.create_topics([TopicSpec("rows", 1, {"retention.ms": "-1"})])
            for _ in range(self.updates):
                self._write(broker, source, self.keys)
            with self._running(self.app("first", None), broker) as streams:
                _wait(streams.caught_up)
            begun = time.monotonic()
            # The state is there already, so it is taken as soon as the interval is over.
            with self._running(self.app("first", self.snapshots, interval_ms=1), broker):
                folder = SnapshotFolder(str(self.snapshots))
                _wait(lambda: bool(find_manifests(folder, _OF_TASK)))
                self.take_seconds = time.monotonic() - begun
            (name, *_) = find_manifests(folder, _OF_TASK)
            self.snapshot_bytes = read_manifest(folder, _OF_TASK, name).size_bytes
            self._write(broker, source, min(TAIL, self.keys))
            with self._running(self.app("first", None), broker) as streams:
                _wait(streams.caught_up)

    def start(self, way: str, number: int) -> Start:
        """Start on a new machine: ``way`` is ``snapshot`` or ``changelog``."""
        restored = _Restored()
        with closing(EmbeddedBroker(self.folder / "log.db")) as broker:
            app = self.app(f"{way}-{number}", self.snapshots if way == "snapshot" else None)
            begun = time.monotonic()
            with self._running(app, broker, restored):
                seconds = time.monotonic() - begun
        return Start(way, restored.records, seconds)

    def _write(self, broker: EmbeddedBroker, source: random.Random, keys: int) -> None:
        with closing(broker.producer("rows", "rows")) as producer:
            for number in range(keys):
                producer.send("rows", 0, b"%012d" % number, source.randbytes(self.value_bytes), number, ())
                if number % 100_000 == 99_999:
                    producer.commit({}, None)
            producer.commit({}, None)

    @contextmanager
    def _running(
        self, app: App, broker: EmbeddedBroker, restored: _Restored | None = None
    ) -> Iterator[Streams]:
        streams = Streams(app, broker=broker)
        streams.set_restore_listener(restored or _Restored())
        streams.start()
        try:
            _wait(lambda: streams.state is ClientState.RUNNING or streams.finished)
            if streams.failure is not None:
                raise streams.failure
            yield streams
        finally:
            streams.close()


class _Restored:
    """Counts records."""

    def __init__(self) -> None:
        self.records = 0

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        """Only records count."""

    def on_batch_restored(self, partition: TopicPartition, store: str, offset: int, records: int) -> None:
        assert partition == _CHANGELOG
        self.records += records

    def on_restore_end(self, partition: TopicPartition, store: str, records: int) -> None:
        """Counted batch by batch."""


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _TIMEOUT_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {_TIMEOUT_S} s")
        time.sleep(0.005)
