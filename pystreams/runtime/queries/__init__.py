"""Interactive queries: look-ups into the stores of a client from other threads.

``store_queries`` is what users hold, ``placing`` finds the partition of a key and the member that owns it,
``global_queries`` reads the stores of global tables.
"""
