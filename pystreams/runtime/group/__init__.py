"""The members of an application's group: who gets which task.

Begin with ``assignor``, a pure function from the ``situation`` (tasks, members, how far their state is) to an
assignment: ``even_spread`` says where the active tasks should be (``even_deal`` makes the shares even, with ``flow`` as
its arithmetic), ``standby_places`` where their standbys are, and the assignor itself what has to warm up first.
``own_assignor`` calls one of the program's instead. ``membership_data`` is what members send each other:
``subscribing`` says what a thread sends, ``client_in_group`` which thread sends it for all of a client, and it keeps
what one thread was told for all of them. ``group_assignor`` is the assignor as the membership protocol calls it,
``broker_assignor`` describes the application to a broker that assigns the tasks itself, ``log_facts`` asks the log for
the ends of changelogs and for racks. ``group_wait`` says in the log why a member is still waiting for its first tasks,
``refusal`` makes the error of a member that the group does not take.
``application_status`` is the view from outside: members, tasks and lags, as the log has them.
"""
