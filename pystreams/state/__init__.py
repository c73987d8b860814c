"""State of a task: stores, the cache before them, the overlay between two commits, RocksDB and memory below.

``TaskState`` opens the stores that specs describe and commits, aborts, restores them together; ``Stores`` makes specs.
"""

from __future__ import annotations
