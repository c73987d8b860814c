"""Snapshots of tasks' stores: taken while the tasks run, and fetched for tasks without local state.

    commit ──► checkpoint, on the thread of the task ──► copied by a thread of its own ──► state_snapshot_dir
    task without local state ──► its last good snapshot, fetched by threads of their own ──► the changelog's tail

- ``client_snapshots``: the snapshots of one client. Begin here.
- ``taking`` takes snapshots of running tasks. ``fetching`` fetches the snapshot that a task begins with.
- ``fitting`` checks whether a snapshot belongs to this application and this log, and whether its changelogs still hold
  the records after it.

The format of snapshots is in ``state/snapshots/``.
"""
