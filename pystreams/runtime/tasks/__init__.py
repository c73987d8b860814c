"""The tasks of one thread.

Begin with ``task``: the states of a task. ``active_task`` is a task that processes records, ``standby_task`` one that
keeps its stores up to date, ``abstract_task`` the common part of both; ``task_set`` holds all assigned tasks, and is
the only place that changes their states; ``standbys`` opens and closes those of a thread. ``task_manager`` takes tasks
on and gives them up as the group decides (``assignment_plan``). ``task_opening`` makes and opens a task,
``start_positions`` returns the offsets at which a task begins to read, and ``last_commits`` checks whether a commit is
still the last one. ``committer`` adds the checks of a group member to ``engine.commit``. ``changelog_guard`` finds
records in changelogs that another process has written, ``purge`` deletes processed records of repartition topics and
other records that nobody needs any more, and ``overflow_reading`` reads metadata that does not fit beside committed
offsets. ``stopwatch`` ends a stretch of processing that takes too long, ``time_order`` lets tasks process in the order
of time while they have a ``backlog``, ``time_bounds`` bounds their stream time by the progress of the tasks upstream,
and ``pausing`` pauses tasks that are far ahead of others in the group. ``store_metrics`` has the metrics of stores and
their caches. ``client_context`` holds the objects that all tasks of a client share. ``state_cleanup`` deletes old
directories of tasks that run elsewhere.
"""
