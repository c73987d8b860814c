"""Metrics in Prometheus' formats, under the names that its JMX exporter gives to those of Kafka Streams.

``process-total`` of the group ``stream-thread-metrics`` is ``kafka_streams_stream_thread_metrics_process_total``. What
Kafka Streams does not have begins with ``pystreams_``, a program's own metrics with ``pystreams_application_``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from pystreams.metrics import Sample
from pystreams.metrics.catalogue import MEANINGS, OWN, group_of

_PROGRAMS: Final = "a metric of the program"

#: What OpenMetrics adds to the name of a family. A name that comes about in two ways has a scrape refused as a whole.
_SUFFIXES: Final = {"counter": ("", "_total", "_created"), "gauge": ("",), "unknown": ("",)}

#: Tags that say to which client a sample belongs.
_CLIENT_TAGS: Final = frozenset({"thread_id", "client_id"})


def exposition(clients: Mapping[str, Sequence[Sample]], accept: str) -> tuple[bytes, str]:
    """The metrics of clients, by client id, in the format that suits an Accept header; and the type of its content."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(clients))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


def prometheus_name(sample: Sample) -> str:
    """The name of a sample for Prometheus."""
    group = group_of(sample.name, sample.tags)
    match group:
        case "":
            prefix = "pystreams_application"
        case _ if group == OWN:
            prefix = "pystreams"
        case _ if group.startswith(("consumer-", "producer-")):
            prefix = f"kafka_{group.partition('-')[0]}_{group}"
        case _:
            prefix = f"kafka_streams_{group}"
    return re.sub(r"[^a-zA-Z0-9_]", "_", f"{prefix}_{sample.name}")


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
            name, labels = prometheus_name(sample), _labels(client_id, sample)
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
                family = families[base] = Metric(base, _meaning(sample), kind)
            elif family.type != kind:
                continue
            family.add_sample(name, labels, sample.value)
        return families.values()

    def _samples(self) -> Iterator[tuple[str, Sample]]:
        for client_id, samples in self._clients.items():
            for sample in samples:
                yield client_id, sample


def _meaning(sample: Sample) -> str:
    return MEANINGS.get((group_of(sample.name, sample.tags), sample.name), _PROGRAMS)


def _kind(name: str, sample: Sample) -> str:
    if sample.counts:
        # Counters of programs may have any name, and those of OpenMetrics have this end.
        return "counter" if name.endswith("_total") else "unknown"
    return "gauge"


def _label(tag: str) -> str:
    """A name that Prometheus allows: it begins with a letter, because an underscore may stand for something else."""
    name = re.sub(r"[^a-zA-Z0-9_]", "_", tag).lstrip("_")
    return name if name[:1].isalpha() else f"tag_{name}"


def _labels(client_id: str, sample: Sample) -> dict[str, str]:
    labels = {_label(tag): text for tag, text in sample.tags}
    if client_id and not _CLIENT_TAGS & labels.keys():
        labels["client_id"] = client_id
    return labels
