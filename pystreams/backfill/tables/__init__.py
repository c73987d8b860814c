"""Topics and stores as tables of typed columns, for Spark SQL and for scripts.

- ``options``: from a reader's options to a table. ``table``: a table and its parts. Begin with these two.
- ``log_tables``: topics, and stores by their changelogs. ``state_table``: stores by state directories and snapshots.

Their columns are those of ``columns``. Nothing here imports Spark; ``spark.datasource`` makes these tables known to
it.
"""
