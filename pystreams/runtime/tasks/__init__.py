"""The tasks of one thread.

Begin with ``task_manager``: it takes tasks on and gives them up as the group decides (``assignment_plan``).
``task_opening`` opens a task, ``restore`` fills its stores from changelogs, ``start_positions`` says where it begins to
read, ``commit`` commits all running tasks at once. ``changelog_guard`` finds records in changelogs that somebody else
has written, ``repartition_purge`` deletes what was processed. ``client_context`` is what all tasks of a client share.
"""
