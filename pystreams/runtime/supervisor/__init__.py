"""Decides what happens to the worker processes of one application: which are started, stopped, killed or started again.

Nothing in this package starts a process or waits: everything is a state machine from events to instructions, which
``pystreams run --workers`` carries out with real processes. So tests play any sequence of events without processes.

- ``worker`` has the states of one worker, and the messages that it sends. Begin with it.
- ``supervision`` decides for all workers: it takes events, and returns instructions.
- ``restarts`` decides after the death of a worker: how long to wait before the next start, or that the run ends.
- ``worker_notes`` has the messages about workers, for the log and for errors.
"""
