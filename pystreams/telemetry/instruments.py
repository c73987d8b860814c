"""Shows the metrics of a client to a meter, under the names that they have for Prometheus.

There is an observable instrument for each name: a counter for a value that only grows, otherwise a gauge. One look at
the metrics serves all instruments of a collection.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from pystreams.metrics import Metrics, Sample
from pystreams.metrics.exposed import exposed_labels, exposed_name, meaning_of

#: OpenTelemetry allows no longer names.
_NAME_LENGTH_MAX: Final = 255


class Measured(Protocol):
    """The part of ``Streams`` that instruments need."""

    metrics: Metrics

    @property
    def client_id(self) -> str: ...


class Instruments:
    """The instruments of one client, on the meter of one reader."""

    def __init__(self, streams: Measured, meter: Meter) -> None:
        self._streams = streams
        self._meter = meter
        self._making = threading.Lock()
        #: By name, whether the instrument is a counter.
        self._made: dict[str, bool] = {}
        #: The look that serves the present collection, and the names that were requested in it.
        self._look: dict[str, list[Sample]] = {}
        self._asked: set[str] = set()

    def make_missing(self) -> None:
        """Make the instruments of all names that there are by now. Not to be called in a collection."""
        self._make(self._sampled())

    def _make(self, look: dict[str, list[Sample]]) -> None:
        with self._making:
            for name, samples in look.items():
                if name not in self._made:
                    self._made[name] = samples[0].counts
                    self._instrument(name, samples[0])

    def _instrument(self, name: str, sample: Sample) -> None:
        callbacks: Sequence[Callable[[CallbackOptions], Iterable[Observation]]]
        callbacks = [partial(self._observe, name)]
        if sample.counts:
            self._meter.create_observable_counter(name, callbacks, description=meaning_of(sample))
        else:
            self._meter.create_observable_gauge(name, callbacks, description=meaning_of(sample))

    def _observe(self, name: str, _options: CallbackOptions) -> Iterable[Observation]:
        if not self._look or name in self._asked:
            # A collection asks each instrument once, so this is the next collection.
            self._look, self._asked = self._sampled(), set()
            if not self._look.keys() <= self._made.keys():
                # The meter waits for the end of the collection before it takes another instrument.
                threading.Thread(target=self._make, args=[self._look], daemon=True).start()
        self._asked.add(name)
        return self._observations(self._look.get(name, ()), counts=self._made[name])

    def _observations(self, samples: Iterable[Sample], *, counts: bool) -> Iterable[Observation]:
        client_id = self._streams.client_id
        # Labels may become equal when they are made fit; two values of one series would be added up.
        seen: set[tuple[tuple[str, str], ...]] = set()
        for sample in samples:
            labels = exposed_labels(client_id, sample)
            series = tuple(sorted(labels.items()))
            if series not in seen and sample.counts is counts:
                seen.add(series)
                yield Observation(sample.value, labels)

    def _sampled(self) -> dict[str, list[Sample]]:
        by_name: defaultdict[str, list[Sample]] = defaultdict(list)
        for sample in self._streams.metrics.snapshot():
            by_name[exposed_name(sample)[:_NAME_LENGTH_MAX]].append(sample)
        return dict(by_name)
