"""Fills the stores of tasks from their changelogs, on a thread beside each stream thread.

Begin with ``restorer``: a mailbox for the owner of the tasks, and steps for the thread that restores, which is in
``restore_thread``. ``restorable`` is what a task must offer, ``task_restores`` knows which tasks are to begin and what
is to be read, ``store_restore`` the progress of one store, and what is wrong with a store that lies outside of its
changelog. ``undone`` finds records that a restore passes over. ``restore_listener`` is called with the progress, and
``progress_log`` writes lines about it to the log. ``group_commits`` says how far the group has come, ``tombstones`` how
long topics keep deletions. ``load`` keeps restoring from taking much of the time in which others process.
"""
