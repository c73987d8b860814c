"""Archives: topics in Parquet or in tables, written run after run, so that the past outlives the log's retention.

- ``archive``: a run, from the ranges that are missing to the commit of their files. Begin here.
- ``target``: what an archive is written to. ``folder_target``: Parquet files with a log of their own, found by readers
  in ``sources.archive_log``. ``delta_target`` and ``iceberg_target``: tables, found by readers in ``sources.lake``.
- ``pieces``: one range of a partition as one file, by any process. ``merging``: small files of tables become larger.
- ``checks``: refusals before anything is written.
"""
