"""The tasks of one thread.

Begin with ``task``: the states of a task's life. ``active_task`` is one that processes records, ``standby_task`` one
that keeps its stores filled, ``abstract_task`` what both have in common; ``task_set`` holds all that are assigned, and
is the only place that changes a state. ``task_manager`` takes them on and gives them up as the group decides
(``assignment_plan``). ``task_opening`` makes and opens a task, ``start_positions`` returns the offsets at which a task
begins to read, and ``last_commits`` knows whether these are still the last. ``committer`` puts the checks of a group's
member around ``engine.commit``. ``changelog_guard`` finds records in changelogs that another process has written,
``purge`` deletes processed records of repartition topics and others that nobody needs any more, and
``overflow_reading`` reads what does not fit beside committed offsets. ``stopwatch`` ends a stretch of processing that
takes too long, ``time_order`` lets tasks process in the order of time while they have a ``backlog``, ``time_bounds``
bounds their stream time by what is known about the tasks before them, and ``pausing`` lets those pause that are far
ahead of others in the group. ``store_metrics`` has what stores and their caches show of themselves. ``client_context``
holds the objects that all tasks of a client share. ``state_cleanup`` deletes old directories of tasks that run
elsewhere.
"""
