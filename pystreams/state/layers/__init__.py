"""Layers: the arrangement of one store's entries in its table, between the store and its overlay.

Begin with ``layer``: the keys of the changelog, and the interface of all layers.

- ``time_layer``: entries that expire by their time, in segments. ``window_layer`` and ``session_layer`` build on it.
- ``restored_time``: the stream time of both while they are restored.
- ``versioned_layer``: the versions of a key; ``version_chain`` finds one by time.
- ``lru_layer``: a store in memory with a maximum number of entries.

A layer knows only bytes. Serdes, values and records' contexts belong to ``stores``.
"""
