"""The supervisor of worker processes as a state machine; ``cli`` runs it with real processes.

Begin with ``worker``, the states of one worker. ``supervision`` decides for all of them, ``restarts`` how long to wait
before a worker starts again, ``worker_notes`` has the messages about them.
"""
