"""The kinds of stores: what operators and processors read and write, with keys and values as objects.

- ``factory``: ``Stores``, with which a user's program describes a store. ``kinds`` opens the store of a description.
- ``items``: how values, timestamps and the cache's items become each other, for all stores. ``header_items``: the same
  where the headers of records are kept.
- ``key_value``, ``window``, ``session``, ``versioned``: the stores that users see.
- ``join_window``, ``join_buffer``, ``change_buffer``: those that joins and ``suppress`` keep for themselves, with
  ``buffer_value``, the bytes of a change that is held back, and ``java_bytes``, Java's order of keys in a set.
- ``list_store``: several values of a key in the order of their arrival.

Begin with ``key_value``. Layers and the cache are below.
"""
