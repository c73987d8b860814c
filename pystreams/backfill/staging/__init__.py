"""The staging folder of a backfill: the results of its slices, and the manifest that says which of them count.

Begin with ``port``, the interfaces of a staging folder for executors and for readers of results.

- ``port`` also describes what is in a staging folder, file by file.
- ``staging_folder`` is the part that is the same wherever slices are stored: the manifest, and the folders of slices.
- ``manifest_files`` has the files of the manifest: they are numbered, each is written once, and the newest whole file
  counts.
- ``local`` stores slices in folders of this machine. Those of Spark are in ``spark.staging``.
"""
