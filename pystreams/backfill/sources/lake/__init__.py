"""Archives in tables of Delta Lake and Iceberg, which ``archive --format`` writes; no Spark is needed to read them.

- ``source``: records of a partition in order, whatever has compacted the table's files. Begin here.
- ``delta`` and ``iceberg``: the files of a table, and where it notes what was archived.
- ``content``: this note, a property of the table. ``libraries``: what they say when something fails.
"""

from __future__ import annotations

from pystreams.backfill.sources.lake.delta import DeltaArchive
from pystreams.backfill.sources.lake.iceberg import IcebergArchive

__all__ = ["DeltaArchive", "IcebergArchive"]
