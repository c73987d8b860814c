"""Metrics in Prometheus' formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from pystreams.metrics import Sample
from pystreams.metrics.exposed import exposed_labels, exposed_name, meaning_of

#: The suffixes that OpenMetrics adds to the name of a family. If two families lead to the same name, Prometheus refuses
#: the whole scrape.
_SUFFIXES: Final = {"counter": ("", "_total", "_created"), "gauge": ("",), "unknown": ("",)}


def exposition(clients: Mapping[str, Sequence[Sample]], accept: str) -> tuple[bytes, str]:
    """The metrics of clients, by client id, in the format that suits an Accept header; and the type of its content."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(clients))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Families(Collector):
    """All samples, gathered by name."""

    def __init__(self, clients: Mapping[str, Sequence[Sample]]) -> None:
        self._clients = clients

    def collect(self) -> Iterable[Metric]:
        families: dict[str, Metric] = {}
        taken: set[str] = set()
        # A scrape with two values of one series would be refused as a whole.
        seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
        for client_id, sample in self._samples():
            name, labels = exposed_name(sample), exposed_labels(client_id, sample)
            series = name, tuple(sorted(labels.items()))
            if series in seen:
                continue
            seen.add(series)
            kind = _kind(name, sample)
            # The formats add the suffix of counters themselves.
            base = name.removesuffix("_total") if kind == "counter" else name
            family = families.get(base)
            if family is None:
                own = {base + suffix for suffix in _SUFFIXES[kind]}
                if own & taken:
                    continue
                taken |= own
                family = families[base] = Metric(base, meaning_of(sample), kind)
            elif family.type != kind:
                continue
            family.add_sample(name, labels, sample.value)
        return families.values()

    def _samples(self) -> Iterator[tuple[str, Sample]]:
        for client_id, samples in self._clients.items():
            for sample in samples:
                yield client_id, sample


def _kind(name: str, sample: Sample) -> str:
    if sample.counts:
        # Counters of programs may have any name, and those of OpenMetrics have this end.
        return "counter" if name.endswith("_total") else "unknown"
    return "gauge"
