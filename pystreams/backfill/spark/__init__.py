"""Backfills on Spark. The only part of pystreams that imports pyspark: install ``pystreams-engine[backfill]``.

- ``executor``: runs the tasks of a slice, one Spark partition for each. Begin here. ``calls``: the code that runs in
  Spark's Python workers.
- ``staging``: slices as Parquet datasets. ``packing``: many rows in one row of Spark. ``arrow``: rows as Arrow on both
  sides. ``hadoop_folder``: small files on Spark's file systems.
- ``frames``: DataFrames as sources, with ``frame_worker`` in Spark's workers.
- ``archive``: archives that Spark's workers write. ``datasource``: topics and stores as tables of Spark.
  ``appending``: tables of Iceberg and Delta that get records of a backfill.
- ``access``: what a backfill needs of Spark beyond a session: ``classic``, with Spark's driver in this process, and
  ``connect``, with a server of Spark Connect.
- ``session``: a Spark session for programs that have none. ``worker_python``: the Python of workers on this machine;
  ``worker_daemon``: what they are forked from.
  ``masters``: the names of masters. ``failures``: errors of Spark as errors for users.
"""
