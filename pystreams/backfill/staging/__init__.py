"""The staging folder of a backfill: slices, and the manifest that says which of them count.

- ``port``: the interfaces of a staging folder for executors and for readers of results. Begin here.
- ``staging_folder``: the part that is the same on all file systems. ``manifest_files``: the manifest's own files.
- ``local``: slices in folders of this machine. Those on Spark are in ``spark.staging``.
"""
