"""The metrics of one process, by name and tags."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from pystreams.clock import Clock, SystemClock
from pystreams.metrics.catalogue import group_of, rank_of
from pystreams.metrics.measure import WINDOW_MS, Measure
from pystreams.metrics.names import WITH_MINIMUM, WITH_RATE, Tags

Key: TypeAlias = tuple[str, Tags]

#: The greatest whole number up to which a float has all of them.
_EXACT_MAX: Final = 2**53


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


Metric = TypeVar("Metric", Counter, Gauge, Measure)


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of a metric at one moment. ``counts``: it is a counter's, which only grows."""

    name: str
    tags: Tags
    value: float
    counts: bool = False


#: Returns samples that are computed at the time of the call.
Source: TypeAlias = Callable[[], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class _Marks:
    """The values of counters at two moments (monotonic), from which rates are computed."""

    before_ms: float
    before: dict[Key, float]
    last_ms: float
    last: dict[Key, float]


class Metrics:
    """The registry of all metrics: makes them and finds them.

    The same name and tags give the same object. Keep the object: a look-up per record would be slow.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = SystemClock() if clock is None else clock
        self._metrics: dict[Key, Counter | Gauge | Measure] = {}
        #: Sources of samples, with the names that their samples may have; None: any.
        self._sources: list[tuple[Source, Collection[str] | None]] = []
        #: The names under which the share of the time is shown, by the key of the measure.
        self._shares: dict[Key, str] = {}
        #: The names under which their number per second is shown.
        self._rates: dict[Key, str] = {}
        self._lock = threading.Lock()
        now_ms = self._clock.monotonic_ms()
        self._marks = _Marks(now_ms, {}, now_ms, {})

    def counter(self, name: str, **tags: object) -> Counter:
        """The counter with this name and these tags. Raises ``TypeError`` if they belong to another kind of metric."""
        return self._get(Counter, Counter, name, tags)

    def gauge(self, name: str, **tags: object) -> Gauge:
        """The gauge with this name and these tags. Raises ``TypeError`` if they belong to another kind of metric."""
        return self._get(Gauge, Gauge, name, tags)

    def measure(self, name: str, share: str = "", rate: str = "", /, **tags: object) -> Measure:
        """The measure with these tags, whose samples are ``name-avg`` and ``name-max``. ``share`` is the name of a
        sample with the share of the time of durations, ``rate`` that of a sample with their number per second. Raises
        ``TypeError`` if name and tags belong to another kind of metric."""
        if share:
            self._shares[name, _texts(tags)] = share
        if rate:
            self._rates[name, _texts(tags)] = rate
        return self._get(Measure, lambda: Measure(self._clock.monotonic_ms()), name, tags)

    def attach(self, source: Source, names: Collection[str] | None = None) -> None:
        """Include the samples of ``source`` in ``snapshot``. ``total`` asks it only if no metric and no earlier source
        has the name, and only for ``names`` (None: for all), because asking may take a while."""
        self._sources.append((source, names))

    def total(self, name: str, **tags: object) -> float:
        """The sum over all metrics with this name and at least these tags; 0 if there are none. If a thread and its
        tasks, or a task and its steps, both have the metric, only those of the tasks or steps count."""
        wanted = set(_texts(tags))
        asked = [ask for ask, names in self._sources if names is None or name in names]
        found: list[Sample] = []
        for ask in (self._counted, *asked):
            found = found or [s for s in ask() if s.name == name and wanted <= set(s.tags)]
        finest = max((rank_of(sample.tags) for sample in found), default=0)
        return sum(sample.value for sample in found if rank_of(sample.tags) == finest)

    def snapshot(self) -> list[Sample]:
        """All metrics, in order of name and tags. Averages and maxima without recent measurements are left out, as are
        metrics that a program has set to a value that is not a finite number."""
        asked = [ask for ask, _ in self._sources]
        samples = [sample for ask in (self._counted, *asked) for sample in ask()]
        return sorted(samples, key=lambda sample: (sample.name, sample.tags))

    def roll(self) -> None:
        """Note the values of counters if that is due, so that rates are those of the last 30 to 60 seconds. Called
        often, by any thread."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._marks.last_ms < WINDOW_MS:
            return
        with self._lock:
            marks = self._marks
            if now_ms - marks.last_ms >= WINDOW_MS:
                self._marks = _Marks(marks.last_ms, marks.last, now_ms, self._totals())

    def _totals(self) -> dict[Key, float]:
        """The values of all counters that have a rate."""
        return {
            key: metric.value
            for key, metric in self._metrics.items()
            if key[0] in WITH_RATE and isinstance(metric, Counter)
        }

    def _counted(self) -> list[Sample]:
        self.roll()
        with self._lock:
            metrics, marks = list(self._metrics.items()), self._marks
        return [sample for key, metric in metrics for sample in self._samples(key, metric, marks)]

    def _samples(self, key: Key, metric: Counter | Gauge | Measure, marks: _Marks) -> Iterator[Sample]:
        name, tags = key
        now_ms = self._clock.monotonic_ms()
        if isinstance(metric, Measure):
            yield from self._measured(key, metric, now_ms)
            return
        value = _number(metric.value)
        if value is None:
            return
        yield Sample(name, tags, value, isinstance(metric, Counter))
        if isinstance(metric, Counter) and name in WITH_RATE and group_of(name, tags):
            elapsed_s = (now_ms - marks.before_ms) / 1000
            grown = value - marks.before.get(key, 0)
            yield Sample(
                name.removesuffix("total") + "rate", tags, grown / elapsed_s if elapsed_s > 0 else 0.0
            )

    def _measured(self, key: Key, measure: Measure, now_ms: float) -> Iterator[Sample]:
        name, tags = key
        values = {f"{name}-avg": measure.average(now_ms), f"{name}-max": measure.maximum(now_ms)}
        if name in WITH_MINIMUM:
            values[f"{name}-min"] = measure.minimum(now_ms)
        if key in self._rates:
            values[self._rates[key]] = measure.rate(now_ms)
        if key in self._shares:
            values[self._shares[key]] = measure.share(now_ms)
        yield from (Sample(sample, tags, value) for sample, value in values.items() if value is not None)

    def _get(
        self, kind: type[Metric], make: Callable[[], Metric], name: str, tags: dict[str, object]
    ) -> Metric:
        key = (name, _texts(tags))
        with self._lock:
            metric = self._metrics.get(key)
            if metric is None:
                metric = self._metrics[key] = make()
        if not isinstance(metric, kind):
            raise TypeError(f"{name} {dict(key[1])} is a {type(metric).__name__}, not a {kind.__name__}")
        return metric


def _number(value: object) -> float | None:
    """The value that a program has set, as a number that any format can hold; None if no format could."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    return value if type(value) is int and abs(value) <= _EXACT_MAX else number


def _texts(tags: dict[str, object]) -> Tags:
    """The tags as text that can be encoded."""
    texts = ((name, str(value).encode(errors="replace").decode()) for name, value in tags.items())
    return tuple(sorted(texts))
