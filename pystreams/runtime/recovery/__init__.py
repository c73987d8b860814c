"""Recovers an application from errors, and from standstills that raise none.

``error_answers`` is the table of what a thread does about an error, and ``trouble`` decides how long it tries again.
Begin with these two. Each of the other modules is about one kind of standstill:

- ``stall_watch`` notices that records of a partition have stopped arriving, and assigns the partition again;
- ``hang_watch`` notices that a round of a thread does not end, and logs the thread's stack;
- ``neighbours`` notices that another process on this machine has died, and removes its members from the group;
- ``rivals`` notices that another living process has the same process id, and ends one of the two.
"""
