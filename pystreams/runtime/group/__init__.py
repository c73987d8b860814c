"""The members of an application's group: who gets which task.

``assignor`` is a pure function from members, tasks and the last assignment to the next one; ``flow`` is its
arithmetic. ``membership_data`` is what members send each other, ``group_assignor`` carries both over the membership
protocol, ``group_wait`` says in the log why a member is still waiting for its first tasks.
"""
