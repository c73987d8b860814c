"""The tasks of one thread.

Begin with ``task``: the states of a task's life. ``active_task`` is one that processes records; ``task_set`` holds all
that are assigned. ``task_manager`` takes them on and gives them up as the group decides (``assignment_plan``), and is
the only one to change their states. ``task_opening`` makes and opens a task, ``restore`` fills the stores of what is
``restorable`` from changelogs, ``start_positions`` says where a task begins to read, ``commit`` commits all running
tasks at once. ``changelog_guard`` finds records in changelogs that somebody else has written, ``repartition_purge``
deletes processed records of repartition topics. ``stopwatch`` ends a stretch of processing that takes too long.
``client_context`` is what all tasks of a client share. ``state_cleanup`` deletes old directories of tasks that run
elsewhere.
"""
