"""Worker processes of a backfill: those of this machine, and what they share with those of Spark.

Begin with ``processes``.

- ``processes`` is an executor that computes the tasks of a slice in processes of this machine, without Spark.
- ``shipping`` makes bytes of an application, for workers that cannot import it by name.
- ``progress`` reports the progress of running tasks to the driver; a report may be lost.
- ``errors`` brings an error of pystreams from a worker to the driver, as data in a text.
"""
