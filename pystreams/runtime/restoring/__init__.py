"""Fills the stores of tasks from their changelogs, on a thread beside each stream thread.

Begin with ``restorer``: a mailbox for the owner of the tasks, and the steps of the restoring thread, which is in
``restore_thread``. ``restorable`` is the interface of a task, ``task_restores`` chooses the tasks to begin with and the
partitions to read. ``store_restore`` has the progress of one store, and the error of a store that lies outside of its
changelog. ``undone`` finds records that a restore leaves out. ``restore_listener`` is called with the progress, and
``progress_log`` writes it to the log. ``group_commits`` reads the group's committed offsets, ``tombstones`` the time
for which topics keep deletions. ``load`` limits the share of time that restoring takes from processing.
"""
