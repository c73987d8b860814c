"""The members of an application's group: who gets which task.

Begin with ``assignor``, a pure function from the ``situation`` (tasks, members, how far their state is) to an
assignment: ``even_spread`` says where the active tasks should be (``even_deal`` makes the shares even, with ``flow`` as
its arithmetic), ``standby_places`` where their standbys are, and the assignor itself what has to warm up first.
``own_assignor`` calls one of the program's instead. ``membership_data`` is what members send each other
(``state_reporter``: one thread for all of a client), ``group_assignor`` carries both over the membership protocol,
``broker_assignor`` describes the application to a broker that assigns the tasks itself, ``log_facts`` asks the log for
the ends of changelogs and for racks. ``group_wait`` says in the log why a member is still waiting for its first tasks.
``application_status`` is the view from outside: members, tasks and lags, as the log has them.
"""
