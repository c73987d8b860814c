"""``pystreams run --workers N``: one supervisor and N processes of the same application.

- ``supervisor``: starts the workers, keeps them alive, stops them together. Begin here.
- ``living``: a worker that has a process, with its last answers to the supervisor's questions.
- ``process``: a worker's process, as the supervisor holds it. ``worker_program``: the program that runs in it.
- ``silent``: stands in for a worker that does not report, and refuses questions about its stores at once.
- ``spare``: a process that has imported everything, and waits until a static worker dies.
- ``channel``: the messages between the two.
- ``display``: the progress of all workers.

``pystreams.runtime.supervisor`` decides when a worker is started again, and when the supervisor gives up.
"""
