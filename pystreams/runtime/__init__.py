"""Runs the engine live: threads, tasks, the group, restoring, queries.

Begin with ``streams``, the client that users start. The packages, from the top layer to the bottom; each imports only
packages below it, and the last three import none of the others:

- ``supervisor/`` decides whether and when a failed worker process is started again;
- ``startup/``    the checks and preparations before the first thread starts;
- ``queries/``    reads stores from other threads;
- ``threads/``    the stream thread, whose rounds do all its work, and the thread of global stores;
- ``tasks/``      the tasks of one thread: opened, restored, run, committed, closed;
- ``snapshots/``  takes snapshots of stores, and fetches them for tasks without state;
- ``restoring/``  fills the stores of tasks, on a thread beside each stream thread;
- ``recovery/``   notices the death of other processes on this machine;
- ``group/``      membership: the data that members exchange, and the assignment of tasks to members;
- ``catching_up/`` keeps records from being late while an application works off a backlog.

``run_client`` runs a client until a signal or the end of the input, ``close_timeout`` makes the error of a client that
does not close in time, ``client_state`` holds the states of a client,
``health`` says whether it works and whether others may rely on it,
``uncaught`` calls the handler of errors that end a thread. ``signals`` stops the client on Ctrl-C and SIGTERM.
"""
