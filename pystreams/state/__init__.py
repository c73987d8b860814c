"""The state of a task: its stores, the cache above them, the overlay with uncommitted writes, RocksDB and memory below.

In the order in which a write passes them:

- ``task_stores``: ``TaskStores`` opens the stores of a task; commits, aborts and restores them together. Begin here.
- ``spec``: a store as data in the topology. ``store``: a store for operators and processors.
- ``stores/``: the kinds of stores, with keys and values as objects, and ``Stores``, which makes specs of them.
- ``cache/``: the write-back cache of a thread. It decides when results are emitted.
- ``layers/``: the arrangement of a store's entries in its table, for look-ups and expiry by key or by time.
- ``overlay``: the writes since the last commit. ``table``: the committed entries, in memory or on disk.
- ``committed``: the stores as of the last commit, for readers in other threads; ``commit_mark`` says when it ends.
- ``snapshots/``: copies of a task's stores outside this machine.
- ``disk/``: RocksDB, its memory, the state directory and its locks.
- ``begun``, ``age``, ``departed``, ``conversion``: local state of an earlier run that is obsolete, too old, not needed
  any more, or has another format.
- ``memory_left``: the content of stores in memory that a closed task leaves for a standby of the same task.
- ``figures``: the figures of a store's cache and of RocksDB. ``measured_store``: a store whose operations are timed.
- ``sorted_files``: a task's stores, built at once from sorted entries by a backfill.
- ``formats``, ``value_forms``: the bytes of keys and values. ``iterators``, ``sorted_map``, ``window_reads``: scans.

This package does not depend on brokers, topics or threads.
"""

from __future__ import annotations
