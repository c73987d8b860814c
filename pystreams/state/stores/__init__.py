"""The kinds of stores: operators and processors read and write them, with keys and values as objects.

- ``factory``: ``Stores``, with which a user's program describes a store. ``kinds`` opens the store of a description.
- ``items``: converts between values, timestamps and the cache's items, for all stores. ``header_items``: the same
  with the headers of records.
- ``key_value``, ``window``, ``session``, ``versioned``: the stores for users.
- ``join_window``, ``join_buffer``, ``change_buffer``: the internal stores of joins and ``suppress``, with
  ``buffer_value``, the bytes of a held-back change, and ``java_bytes``, Java's order of keys in a set.
- ``list_store``: several values of a key in the order of their arrival.

Begin with ``key_value``. Layers and the cache are below.
"""
