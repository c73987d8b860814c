"""The write-back cache between a store and its overlay. It weighs, evicts and flushes exactly as that of Kafka Streams.

Begin with ``thread_cache``: the byte budget of a thread (``ThreadCache``) and the entries of one store
(``NamedCache``). Each of the others adds to the one before it:

- ``item_cache``: reads and writes items for a key-value or session store.
- ``window_cache``: scans of window stores, by key or in the order of time.
- ``indexed_window_cache``: the same for a store on disk whose index by key is cached, too.

The cache passes flushed entries to a listener; it does not depend on the store.
"""
