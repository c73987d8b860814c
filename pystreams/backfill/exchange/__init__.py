"""Rows that the slices of a backfill hand to each other, as Arrow columns.

- ``rows``: the two schemas, of records and of rows between slices, and columns to and from record batches. Begin here.
- ``order``: the order in which a task gets the rows of its queues: as a sort, and merged from streams.
- ``store_entries``: the entries of a store as rows. ``task_outcome``: where a task stands at its end, as a row.
- ``bounded_map``: bytes by key, which go to the disk when they are many.

Nothing here reads or writes files of a backfill, and nothing knows plans or sources.
"""
