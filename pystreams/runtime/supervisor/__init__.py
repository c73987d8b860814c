"""Worker processes and their supervisor, as a machine without processes; ``cli`` runs it.

``worker`` holds the states of one worker, ``supervision`` decides for all of them, ``restarts`` how long to wait before
a worker starts again, ``worker_notes`` words what users read about them.
"""
