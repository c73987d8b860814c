"""Windows and sessions that a machine without state has restored leave its disk when their retention is over."""

from __future__ import annotations

from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pystreams.app import App
from pystreams.dsl.windows import EmitStrategy, SessionWindows, TimeWindows
from pystreams.ids import TopicPartition
from pystreams.metrics import names
from pystreams.runtime.streams import Streams
from pystreams.state.disk.directory import ROCKSDB_DIRECTORY
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.snapshots.reading import find_manifests
from tests.examples import chosen
from tests.kafka.support import Cluster
from tests.live.support import TIMEOUT_S, Log, caught_up, eventually, run_to_the_end

pytestmark = pytest.mark.slow

MINUTE_MS = 60_000
#: On disk windows expire by segments, of half of it.
RETENTION_MS = 10 * MINUTE_MS
START_MS = 100 * RETENTION_MS
KEYS, MINUTES = 100, 5
#: All windows have expired by then, and their segments.
FAR_MS = START_MS + 4 * RETENTION_MS
#: The store of windows that are emitted when they close has an index by time.
ROWS_OF_A_WINDOW = {"updated": 1, "closed": 2, "sessions": 1}


def windowed(log: Log, state: str, **settings: Any) -> App:
    app = log.app(
        "expiring",
        state_dir=log.path / state,
        window_changelog_retention_ms=-1,
        statestore_cache_max_bytes=0,
        **settings,
    )
    grouped = app.stream("in", key=str, value=int).group_by_key()
    windows = grouped.windowed_by(TimeWindows.tumbling(MINUTE_MS))
    windows.count(name="updated", retention=RETENTION_MS)
    windows.emit_strategy(EmitStrategy.on_window_close()).count(name="closed", retention=RETENTION_MS)
    grouped.windowed_by(SessionWindows.of(MINUTE_MS // 2)).count(name="sessions", retention=RETENTION_MS)
    return app


def write_windows(log: Log) -> None:
    """One window and one session of each key in each minute."""
    for minute in range(MINUTES):
        log.write("in", [(f"k{key}", 1, START_MS + minute * MINUTE_MS) for key in range(KEYS)])


def rows_on_disk(log: Log, state: str) -> dict[str, int]:
    """By store, after the application has ended."""
    path = log.path / state / "expiring" / "0_0" / ROCKSDB_DIRECTORY
    with closing(RocksDatabase(path, ROWS_OF_A_WINDOW, RocksResources())) as database:
        return {name: len(list(table.walk(b""))) for name, table in database.tables.items()}


def rows_of(windows: int) -> dict[str, int]:
    return {store: windows * rows for store, rows in ROWS_OF_A_WINDOW.items()}


def until_snapshot(log: Log, streams: Streams, snapshots: Path) -> None:
    """Wait for one that lacks nothing."""
    caught_up(streams)
    changelogs = [TopicPartition(f"expiring-{store}-changelog", 0) for store in ROWS_OF_A_WINDOW]
    # Behind the records may be the mark of a transaction.
    records = sum(log.admin.end_offsets(changelogs).values()) - len(changelogs)
    taken = SnapshotFolder(str(snapshots))
    eventually(
        lambda: any(name.offsets >= records for name in find_manifests(taken, "expiring/0_0")),
        f"a snapshot as of {records}",
    )


#: The log, whether exactly once, and from where state is restored.
CASES = product([("embedded", True), ("kafka", False), ("kafka", True)], ["changelog", "snapshot"])


@pytest.mark.parametrize(
    ("log", "exactly_once", "source"),
    [
        pytest.param(log, once, source, marks=[pytest.mark.kafka] * (log == "kafka"))
        # On Kafka each source with one guarantee: a restore reads what is committed with either.
        for (log, once), source in chosen(
            CASES, lambda case: case[0][0] == "embedded" or case[0][1] == (case[1] == "changelog")
        )
    ],
    indirect=["log"],
)
def test_expired_windows_that_were_restored_are_on_no_disk(log: Log, exactly_once: bool, source: str) -> None:
    if exactly_once and isinstance(log, Cluster):
        log.broker = log.broker_with(exactly_once=True)
    log.create("in")
    write_windows(log)
    snapshots = log.path / "snapshots"
    settings: dict[str, Any] = {}
    if source == "snapshot":
        settings = {"state_snapshot_dir": str(snapshots), "state_snapshot_interval_ms": 100}
    first = log.start(windowed(log, "first", **settings))
    caught_up(first)
    if source == "snapshot":
        until_snapshot(log, first, snapshots)
    assert first.close(1000 * TIMEOUT_S)

    # None has expired: a machine without state restores all.
    second = run_to_the_end(log, windowed(log, "second", **settings))
    assert second.metrics.total(names.SNAPSHOTS_USED) == (source == "snapshot")
    assert rows_on_disk(log, "second") == rows_of(KEYS * MINUTES)

    # They expire after they were restored.
    third = log.start(windowed(log, "third", **settings))
    caught_up(third)
    log.write("in", [("far", 1, FAR_MS)])
    caught_up(third)
    eventually(lambda: log.all_committed("expiring", "in"), "the record that is far is committed")
    assert third.close(1000 * TIMEOUT_S)
    assert rows_on_disk(log, "third") == rows_of(1)

    # They had expired before they are restored: the changelogs have them still.
    run_to_the_end(log, windowed(log, "fourth", **settings))
    log.write("in", [("far", 1, FAR_MS)])
    run_to_the_end(log, windowed(log, "fourth", **settings))
    assert rows_on_disk(log, "fourth") == rows_of(1)
