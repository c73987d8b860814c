"""The facts for catching up: how an application processes what its topics held before it came.

While it does, some tasks are ahead of others, and what they write meets in the topics between sub-topologies. Records
of the slower ones would be late there. These modules know topologies and offsets, but no tasks.

Begin with ``order_plan``: it says which tasks of a thread must process in the order of time, and how exactly.
``subtopology_graph`` knows which sub-topologies write what others read, ``time_steps`` which steps of a sub-topology
depend on stream time, and how late their records may be.

``group_lag`` finds from the group's committed offsets who lags and what stream time the others may reach, ``stages`` in
which order, ``one_partition`` who need not wait, ``hold_back`` how much older results can be than stream time,
``pending_bounds`` when a bound is in force, ``spread`` how far ahead of those that lag the others may be.
Only ``group_watch`` reads from the log: the offsets, for all threads of a client.
"""
