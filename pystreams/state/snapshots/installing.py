"""Makes the files of a snapshot the local state of a task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pystreams.errors import StateCorruptedError
from pystreams.state.disk.directory import (
    FORMAT_VERSION,
    OFFSETS_FILE,
    ROCKSDB_DIRECTORY,
    DirectoryLock,
    write_json,
)
from pystreams.state.disk.rocksdb import RocksDatabase
from pystreams.state.disk.rocksdb_memory import RocksResources
from pystreams.state.formats import pack_int64


def has_state(directory: Path) -> bool:
    """Whether a task's directory has stores, complete or not."""
    return (directory / ROCKSDB_DIRECTORY / "CURRENT").exists()


def prepare(files: Path, offsets: Mapping[str, int], resources: RocksResources) -> None:
    """Check that the database in ``files`` has the stores in ``offsets`` as of these offsets, and empty all other
    stores: no topic restores those, so changes after the snapshot would be missing without an error.

    Raises ``StateCorruptedError``, and ``StateError`` for a disk that cannot be used.
    """
    database = RocksDatabase(files, [], resources)
    try:
        stored = database.metadata()
        for store, offset in offsets.items():
            if stored.get(b"offset/" + store.encode()) != pack_int64(offset):
                raise StateCorruptedError(
                    "a snapshot does not hold what its manifest says",
                    where=f"store {store}",
                    why=f"its database is not as of offset {offset}",
                )
        for store in database.unopened():
            if store not in offsets:
                marks = [key for key in stored if key.endswith(b"/" + store.encode())]
                database.write((), metadata=dict.fromkeys(marks))
                database.empty(store)
    finally:
        database.close()


def install(files: Path, directory: Path, offsets: Mapping[str, int]) -> bool:
    """Move the database in ``files`` into a task's directory, on the same file system. False if it has stores by now:
    another process was faster.

    Raises ``StateLockedError`` while another thread or process has the task open, ``StateError`` if the directory
    cannot be used.
    """
    lock = DirectoryLock(directory)
    try:
        if has_state(directory):
            return False
        lock.delete_contents()
        files.replace(directory / ROCKSDB_DIRECTORY)
        # Last, because a directory without this file is refused: so incomplete state is never taken for complete.
        write_json(directory / OFFSETS_FILE, {"format": FORMAT_VERSION, "offsets": dict(offsets)})
    finally:
        lock.release()
    return True
