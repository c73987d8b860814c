"""Recovers an application from standstills that raise no error.

Begin with ``stall_watch``. Each module is about one kind of standstill:

- ``stall_watch`` notices that records of a partition have stopped arriving, and assigns the partition again;
- ``hang_watch`` notices that a round of a thread does not end, and logs the thread's stack;
- ``neighbours`` notices that another process on this machine has died, and removes its members from the group;
- ``rivals`` notices that another living process has the same process id, and ends one of the two.
"""
