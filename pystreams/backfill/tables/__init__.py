"""Topics and stores as tables of typed columns, for Spark SQL and for scripts.

- ``options``: from a reader's options to a table. ``table``: a table, its parts and its columns. Begin with these two.
- ``log_tables``: topics, and stores by their changelogs. ``state_table``: stores by state directories and snapshots.
- ``compacted``: the last value of each key. ``key_spans``: the window or session in a store's key. ``typed_columns``:
  bytes as numbers and text.

Nothing here imports Spark; ``spark.datasource`` makes these tables known to it.
"""
