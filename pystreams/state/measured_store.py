"""A store whose operations are timed one by one, for the recording level DEBUG. Each operation reads a clock twice.

Source: org.apache.kafka.streams.state.internals.MeteredKeyValueStore, MeteredWindowStore, MeteredSessionStore,
NamedCache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MemberDescriptorType
from typing import Any, Final, TypeAlias

from pystreams.clock import Clock
from pystreams.metrics import Measure, Metrics, names
from pystreams.state.cache.thread_cache import NamedCache
from pystreams.state.figures import state_tag
from pystreams.state.iterators import StoreIterator
from pystreams.state.spec import WINDOWED_KINDS, StoreSpec
from pystreams.state.store import Store
from pystreams.state.stores.change_buffer import ChangeBuffer

_Method: TypeAlias = Callable[..., Any]

_NS_PER_MS: Final = 1_000_000
_WRITES: Final = {"put": "put", "write": "put", "write_encoded": "put"}
#: The names of operations in Kafka Streams, by the methods of programs and of operators that carry them out. Reads of
#: several entries are not among them, because their duration depends on how long the reader keeps the iterator open.
_OF_KEYS: Final = {
    **_WRITES,
    "get": "get",
    "read": "get",
    "delete": "delete",
    "put_if_absent": "put-if-absent",
    "put_all": "put-all",
}
_OF_WINDOWS: Final = {**_WRITES, "fetch": "fetch", "read": "fetch", "peek": "fetch"}
_OF_SESSIONS: Final = {**_WRITES, "fetch_session": "fetch", "remove": "remove", "delete": "remove"}
#: The operations that look into the cache for one entry.
_READS: Final = frozenset({"get", "fetch"})


class _HitRatio:
    """The share of the reads of a store that its cache has answered so far."""

    def __init__(self, ratio: Measure, cache: NamedCache) -> None:
        self._ratio = ratio
        self._cache = cache
        self._reads = cache.reads = 0

    def read(self, now_ms: float) -> None:
        """An entry was read."""
        self._reads += 1
        self._cache.reads = self._reads
        self._ratio.record(max(0, self._reads - self._cache.misses) / self._reads, 1, now_ms)


class StoreMeasures:
    """The measures of a task's stores."""

    def __init__(self, metrics: Metrics, clock: Clock, **tags: object) -> None:
        self._metrics = metrics
        self._clock = clock
        self._tags = tags

    def measure(self, store: Store) -> None:
        """Replace the store's methods, and the functions that it has bound, by versions that measure themselves."""
        methods = self._held_back(store) if isinstance(store, ChangeBuffer) else self._timings(store)
        of_class: dict[str, Any] = {}
        for name, timing in methods.items():
            of_all = getattr(type(store), name, None)
            if isinstance(of_all, MemberDescriptorType):
                setattr(store, name, timing(getattr(store, name)))
            elif of_all is not None:
                of_class[name] = timing(of_all)
        measured: type[Any] = type(type(store).__name__, (type(store),), {"__slots__": (), **of_class})
        store.__class__ = measured

    def _timings(self, store: Store) -> dict[str, Callable[[_Method], _Method]]:
        hits = None
        if store.cache is not None:
            ratio = self._metrics.measure(names.HIT_RATIO, record_cache_id=store.name, **self._tags)
            hits = _HitRatio(ratio, store.cache)
        return {
            name: partial(self._timed, store.spec, operation, hits if operation in _READS else None)
            for name, operation in _operations(store.spec).items()
        }

    def _timed(self, spec: StoreSpec, operation: str, hits: _HitRatio | None, method: _Method) -> _Method:
        latency_ns = self._metrics.measure(
            f"{operation}-latency", "", f"{operation}-rate", **{state_tag(spec): spec.name}, **self._tags
        )
        monotonic_ms = self._clock.monotonic_ms

        def timed(*arguments: Any, **options: Any) -> Any:
            began_ms = monotonic_ms()
            result = method(*arguments, **options)
            ended_ms = monotonic_ms()
            if not isinstance(result, StoreIterator):
                latency_ns.record((ended_ms - began_ms) * _NS_PER_MS, 1, ended_ms)
                if hits is not None:
                    hits.read(ended_ms)
            return result

        return timed

    def _held_back(self, buffer: ChangeBuffer) -> dict[str, Callable[[_Method], _Method]]:
        tags = {state_tag(buffer.spec): buffer.name, **self._tags}
        count = self._metrics.measure(names.BUFFER_COUNT, **tags)
        size_bytes = self._metrics.measure(names.BUFFER_SIZE, **tags)

        def measured(put: _Method) -> _Method:
            def putting(*arguments: Any) -> None:
                put(*arguments)
                now_ms = self._clock.monotonic_ms()
                count.record(len(buffer), 1, now_ms)
                size_bytes.record(buffer.size_bytes, 1, now_ms)

            return putting

        return {"put": measured}


def _operations(spec: StoreSpec) -> Mapping[str, str]:
    if spec.kind in WINDOWED_KINDS:
        return _OF_WINDOWS
    return _OF_SESSIONS if spec.kind == "session" else _OF_KEYS
