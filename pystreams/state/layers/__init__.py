"""Layers: how the entries of one store lie in its table, between the store and its overlay.

Begin with ``layer``: keys as the changelog has them, and the interface of all layers.

- ``time_layer``: entries that expire by their time, in segments. ``window_layer`` and ``session_layer`` build on it.
- ``versioned_layer``: the versions of a key, which ``version_chain`` finds by time.
- ``lru_layer``: a store in memory that keeps a number of entries.

A layer knows bytes. Serdes, values and records' contexts belong to ``stores``.
"""
