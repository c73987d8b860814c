"""Archives: topics in Parquet, written run after run, so that the past outlives the log's retention.

- ``archive``: a run, from the ranges that are missing to the commit of their files. Begin here.
- ``pieces``: one range of a partition as one file, by any process. ``checks``: refusals before anything is written.

The archive's own log, which readers need, is in ``sources.archive_log``.
"""
