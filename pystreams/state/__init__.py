"""State of a task: stores, the cache before them, the overlay between two commits, RocksDB and memory below.

Read from the top down, as a record's write goes:

- ``task_state``: ``TaskState`` opens the stores of a task and commits, aborts and restores them together. Begin here.
- ``spec``: a store as data, as the topology holds it. ``store``: a store as operators and processors see it.
- ``stores/``: the kinds of stores, which know keys and values, and ``Stores``, which makes specs of them.
- ``cache/``: the write-back cache of a thread, which decides what is emitted when.
- ``layers/``: how the entries of a store lie in its table, so that they are found, and expire, by key or by time.
- ``overlay``: what was written since the last commit. ``table``: the committed rest, in memory or on disk.
- ``disk/``: RocksDB, the memory that it uses, the state directory and its locks.
- ``begun``, ``conversion``: what is on disk from an earlier run follows another beginning, or lies in another form.
- ``sorted_files``: a task's stores written at once from sorted entries, as a backfill does.
- ``formats``, ``value_forms``: the bytes of keys and values. ``iterators``, ``sorted_map``, ``window_reads``: walks.

Nothing here knows of brokers, topics or threads.
"""

from __future__ import annotations
