"""A snapshot: the result of a backfill as a folder of RocksDB directories, from which a live application restores.

    <folder>/manifest.json               format, the backfill's manifest, stores, outcomes of tasks; written last
    <folder>/0_1/rocksdb/                the persistent stores of task 0_1, as they lie in its state directory
    <folder>/0_1/beside/                 by changelog key: stores in memory, and timestamps that a table does not keep

Neither Spark nor the staging folder is needed to go on from it. It must lie where all workers and this process reach it
under the same path: on this machine, or on a file system that all mount.

Begin with ``format``, the manifest of a snapshot; ``writing`` makes one. ``snapshot_result`` gives it to a hand-over or
a table as a result, ``restoring`` hands it over, with its databases for the state directory of this machine.
"""

from __future__ import annotations

from pystreams.backfill.snapshot.restoring import restore_snapshot
from pystreams.backfill.snapshot.snapshot_result import open_snapshot
from pystreams.backfill.snapshot.writing import write_snapshot

__all__ = ["open_snapshot", "restore_snapshot", "write_snapshot"]
