"""The members of an application's group: who gets which task.

Begin with ``assignor``, a pure function from the ``situation`` (tasks, members, progress of their state) to an
assignment: ``even_spread`` chooses the members that should have the active tasks (``even_deal`` makes the shares even,
with ``flow`` as its arithmetic), ``standby_places`` the processes that get standbys, and the assignor itself the tasks
that have to warm up first. ``own_assignor`` calls an assignor of the program instead. ``membership_data`` is the data
that members exchange: ``subscribing`` makes the data that a thread sends. ``client_in_group`` chooses the thread that
sends for all threads of a client, and keeps the data that one thread has received for all of them. ``group_assignor``
is the assignor as the membership protocol calls it, ``broker_assignor`` describes the application to a broker that
assigns the tasks itself, ``log_facts`` asks the log for the ends of changelogs and for racks. ``group_wait`` logs why a
member is still waiting for its first tasks, ``refusal`` makes the error of a member that the group does not accept.
``application_status`` is the view from outside: members, tasks and lags, as the log has them.
"""
