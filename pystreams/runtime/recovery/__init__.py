"""Gets an application going again where no error says that it stands still.

Begin with ``stall_watch``, which notices a partition that is no longer read. ``hang_watch`` shows where a thread hangs.
``neighbours`` notices that another process has died, ``rivals`` ends one of two threads with one transactional id.
"""
