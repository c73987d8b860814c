"""The facts for catching up: how an application processes a backlog of records.

While it does, some tasks are ahead of others, and their results meet in the topics between sub-topologies. The results
of the slower tasks would be late there. These modules know topologies and offsets, but no tasks.

Begin with ``order_plan``: it decides which tasks of a thread must process in the order of time, and how exactly.
``subtopology_graph`` finds the sub-topologies that write the inputs of others, ``time_steps`` the steps of a
sub-topology that depend on stream time, and how late their records may be.

``group_lag`` derives from the group's committed offsets which tasks lag, and what stream time the others may reach;
``stages`` is the order in which it does so. ``one_partition`` finds the sub-topologies that need not wait,
``hold_back`` how much older results can be than stream time. ``pending_bounds`` decides when a bound is in force,
``spread`` how far ahead of lagging tasks the others may be. Only ``group_watch`` reads from the log: the offsets, for
all threads of a client.
"""
