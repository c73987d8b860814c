"""The names under which metrics leave the process: the names that Prometheus' JMX exporter gives the metrics of Kafka
Streams.

``process-total`` of the group ``stream-thread-metrics`` is ``kafka_streams_stream_thread_metrics_process_total``. The
names of metrics that Kafka Streams does not have begin with ``pystreams_``, those of a program's own metrics with
``pystreams_application_``.
"""

from __future__ import annotations

import re
from typing import Final

from pystreams.metrics.catalogue import MEANINGS, OWN, group_of
from pystreams.metrics.registry import Sample

_PROGRAMS: Final = "a metric of the program"

#: Tags that identify the client of a sample.
_CLIENT_TAGS: Final = frozenset({"thread_id", "client_id"})


def exposed_name(sample: Sample) -> str:
    """The name of a sample outside of the process, which Prometheus and OpenTelemetry allow."""
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


def exposed_labels(client_id: str, sample: Sample) -> dict[str, str]:
    """The labels of a sample of a client: its tags, and the client itself where no tag names it."""
    labels = {_label(tag): text for tag, text in sample.tags}
    if client_id and not _CLIENT_TAGS & labels.keys():
        labels["client_id"] = client_id
    return labels


def meaning_of(sample: Sample) -> str:
    """The meaning of a sample, in words."""
    return MEANINGS.get((group_of(sample.name, sample.tags), sample.name), _PROGRAMS)


def _label(tag: str) -> str:
    """A name that Prometheus allows: it begins with a letter, because an underscore may stand for something else."""
    name = re.sub(r"[^a-zA-Z0-9_]", "_", tag).lstrip("_")
    return name if name[:1].isalpha() else f"tag_{name}"
