"""Counters and gauges of one process, by name and tags."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

Tags: TypeAlias = tuple[tuple[str, str], ...]


class Counter:
    """A number that only grows. One thread adds (give each thread a counter with its own tag); any thread may read."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, n: float = 1) -> None:
        self.value += n


class Gauge:
    """The number that was set last. Any thread may set it, any thread may read it."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def set(self, value: float) -> None:
        self.value = value


Metric = TypeVar("Metric", Counter, Gauge)


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of a metric at one moment."""

    name: str
    tags: Tags
    value: float


class Metrics:
    """The registry of all metrics: makes them and finds them.

    The same name and tags give the same object. Keep the object: a look-up per record would be slow.
    """

    def __init__(self) -> None:
        self._metrics: dict[tuple[str, Tags], Counter | Gauge] = {}
        self._lock = threading.Lock()

    def counter(self, name: str, **tags: object) -> Counter:
        """The counter with this name and these tags. Raises ``TypeError`` if they belong to a gauge."""
        return self._get(Counter, name, tags)

    def gauge(self, name: str, **tags: object) -> Gauge:
        """The gauge with this name and these tags. Raises ``TypeError`` if they belong to a counter."""
        return self._get(Gauge, name, tags)

    def total(self, name: str, **tags: object) -> float:
        """The sum over all metrics with this name and at least these tags; 0 if there are none."""
        wanted = set(_texts(tags))
        return sum(s.value for s in self.snapshot() if s.name == name and wanted <= set(s.tags))

    def snapshot(self) -> list[Sample]:
        """All metrics, in order of name and tags."""
        with self._lock:
            metrics = sorted(self._metrics.items(), key=lambda item: item[0])
        return [Sample(name, tags, metric.value) for (name, tags), metric in metrics]

    def _get(self, kind: type[Metric], name: str, tags: dict[str, object]) -> Metric:
        key = (name, _texts(tags))
        with self._lock:
            metric = self._metrics.setdefault(key, kind())
        if not isinstance(metric, kind):
            raise TypeError(f"{name} {dict(key[1])} is a {type(metric).__name__}, not a {kind.__name__}")
        return metric


def _texts(tags: dict[str, object]) -> Tags:
    return tuple(sorted((name, str(value)) for name, value in tags.items()))
