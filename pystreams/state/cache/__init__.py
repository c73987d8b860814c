"""The write-back cache between a store and its overlay, equal to Kafka Streams' in what it weighs, evicts and flushes.

Begin with ``thread_cache``: the byte budget of a thread (``ThreadCache``) and the entries of one store in it
(``NamedCache``). Each of the others adds to the one before it:

- ``item_cache``: reads and writes items for a key-value or session store.
- ``window_cache``: the walks of window stores, by key or in the order of time.
- ``indexed_window_cache``: the same for a store on disk whose index by key is cached, too.

The cache hands what it flushes to a listener; it knows no store.
"""
