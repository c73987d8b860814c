"""Records the files that the present version writes, for the versions that come after it.

python -m tests.live.older_versions.record NAME

writes ``NAME.tar.gz`` beside this file: the embedded log ``log.db``, the state directory ``state`` and a snapshot of
the task in ``snapshots``, after the first half of what ``program`` reads. Make one when a version begins to write its
files in another way. Older recordings stay for as long as their files are to be read.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from contextlib import closing
from pathlib import Path

from pystreams.ids import TopicPartition
from pystreams.state.snapshots.folder import SnapshotFolder
from pystreams.state.snapshots.reading import find_manifests, read_manifest
from tests.live.older_versions.program import (
    APPLICATION,
    HALF,
    INPUTS,
    OUTPUTS,
    RECORDED_MS,
    history,
    open_at,
    snapshots_of,
    started,
    write,
)
from tests.live.support import Log, eventually

RECORDED = ("log.db", "state", "snapshots")


def snapshot_is_complete(log: Log) -> bool:
    """Whether the last snapshot of the task lacks nothing that its stores have."""
    folder, of_task = SnapshotFolder(str(snapshots_of(log))), f"{APPLICATION}/0_0"
    found = find_manifests(folder, of_task)
    if not found:
        return False
    stores = read_manifest(folder, of_task, found[0]).stores.values()
    ends = log.admin.end_offsets([TopicPartition(store.topic, 0) for store in stores])
    return all(store.offset == ends[TopicPartition(store.topic, 0)] for store in stores)


def record(path: Path) -> None:
    """Write the files below ``path``."""
    log, clock = open_at(path, RECORDED_MS)
    with closing(log):
        log.create(*INPUTS, *OUTPUTS)
        write(log, history()[:HALF])
        with started(log, clock):
            eventually(lambda: snapshot_is_complete(log), "a snapshot that lacks nothing")


def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What an archive says of a file, without its owner. RocksDB's account of what it has done is left out."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if Path(entry.name).name.startswith("LOG") else entry


def main() -> None:
    (name,) = sys.argv[1:]
    target = Path(__file__).with_name(f"{name}.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))
        with tarfile.open(target, "w:gz") as archive:
            for part in RECORDED:
                archive.add(Path(folder) / part, part, filter=kept)
    print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
