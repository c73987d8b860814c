"""Snapshots: copies of tasks' stores outside of this machine, from which another one goes on.

    <folder>/<application_id>/0_1/snapshot-<offsets>-<time>-<owner>.json    the manifest of a snapshot; written last
    <folder>/<application_id>/0_1/files/<sha256>                            its files, each named by its content

A snapshot is a RocksDB checkpoint: the files of a database as of one commit. RocksDB never changes a file of entries,
so the next snapshot shares most files with this one, and copies the others alone. Owners of a task do not see each
other: each writes manifests under names of its own, and a file has the same content whoever writes it.

- ``manifest``: what a snapshot holds, as of which offsets. Begin here.
- ``folder``: the files, on this machine or wherever fsspec reaches.
- ``writing``: copies a checkpoint into the folder, and deletes what is not needed any more.
- ``reading``: finds snapshots, and copies one back. ``installing`` makes it a task's local state.
"""

from __future__ import annotations
