"""The live host of the engine: threads, tasks, the group, restoring, queries.

Begin with ``streams``, the client that users start. Its packages, from the top to the bottom:

- ``startup/``    everything that is checked and prepared before the first thread starts;
- ``queries/``    look-ups into stores from other threads;
- ``supervisor/`` which worker process is started again, when, and when no longer;
- ``threads/``    the stream thread, whose rounds do all its work, and the thread of global stores;
- ``tasks/``      the tasks of one thread: opened, restored, run, committed, closed;
- ``group/``      membership: what members tell each other, and who gets which task.

``run_client`` runs a client until a signal or the end of the input, ``client_state`` holds the states of a client,
``uncaught`` the handler of errors that end a thread. ``signals`` stops on Ctrl-C and SIGTERM.
"""
