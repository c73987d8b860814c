"""The garbage collector does not look at the entries of a cache, however many there are."""

from __future__ import annotations

import gc

from pystreams.state.cache.thread_cache import CLEAN_CONTEXT, NamedCache, ThreadCache


def test_a_full_cache_gives_the_collector_nothing_more_to_look_at():
    cache = NamedCache(ThreadCache(1 << 20), "counts")
    before = len(gc.get_objects())
    for n in range(1_000):
        cache.put(b"key-%d" % n, n, CLEAN_CONTEXT, 50, dirty=True)
    assert len(cache) == 1_000
    # The list of dirty entries and what the interpreter makes meanwhile are a few objects.
    assert len(gc.get_objects()) - before < 100
