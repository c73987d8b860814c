"""What gets an application going again where no error says so: ``neighbours`` notices that another process has died,
``stall_watch`` that a partition is no longer read."""
