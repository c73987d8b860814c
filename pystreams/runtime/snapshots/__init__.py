"""Snapshots of tasks' stores: taken while the tasks run, and fetched where a task has no state yet.

    commit ──► checkpoint, on the thread of the task ──► copied by a thread of its own ──► state_snapshot_dir
    task without local state ──► its last good snapshot, fetched by threads of their own ──► the changelog's tail

- ``client_snapshots``: what a client has of all this. Begin here.
- ``taking``: when snapshots are taken, and by whom. ``fetching``: which snapshot a task begins with.
- ``fitting``: whether a snapshot belongs to this application, to this log, and to what its changelogs still hold.

The format is ``state/snapshots/``.
"""
