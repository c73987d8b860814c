"""Gets an application going again where no error says that it stands still: ``neighbours`` notices that another process
has died, ``stall_watch`` notices a partition that is no longer read, ``rivals`` ends one of two threads with one
transactional id."""
