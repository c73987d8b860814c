"""Snapshots: copies of tasks' stores outside this machine, from which another machine can continue.

    <folder>/<application_id>/0_1/snapshot-<offsets>-<time>-<owner>.json    the manifest of a snapshot; written last
    <folder>/<application_id>/0_1/files/<sha256>                            its files, each named by its content

A snapshot is a RocksDB checkpoint: the files of a database as of one commit. RocksDB never changes a file of entries,
so the next snapshot shares most files with this one, and copies only the others. Several owners of a task do not
disturb each other: each writes manifests under its own names, and files with the same name have the same content.

- ``manifest``: the content of a snapshot, with its offsets. Begin here.
- ``folder``: the files, on this machine or on any file system of fsspec.
- ``writing``: copies a checkpoint into the folder, and deletes files that are not needed any more.
- ``reading``: finds snapshots, and copies one back. ``installing`` makes it a task's local state.
"""

from __future__ import annotations
