"""Worker processes: those of this machine, and what they share with those of Spark.

- ``processes``: an executor that computes the tasks of a slice in processes of this machine. Begin here.
- ``shipping``: the application as bytes for workers that cannot import it.
- ``progress``: the progress of running tasks, on its way to the driver. ``errors``: errors, on the same way.
"""
