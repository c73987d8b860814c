"""The members of an application's group: who gets which task.

``assignor`` is a pure function from a ``situation`` (members, tasks, the last assignment) to the next assignment:
``even_spread`` deals the active tasks, ``standby_places`` the standbys, and ``flow`` is their arithmetic.
``membership_data`` is what members send each other, and ``teller`` chooses the thread that speaks for its process;
``group_assignor`` carries both over the membership protocol, ``group_wait`` says in the log why a member is still
waiting for its first tasks.
"""
