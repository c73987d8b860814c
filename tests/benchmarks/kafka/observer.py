"""How far a run is, seen from the broker: committed offsets and end offsets, ten times a second.

What an application says of itself is not asked. Progress is what it has committed, of its inputs and of its internal
topics: a record that was read and not yet counted does not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.benchmarks.kafka.offsets import Offsets
from tests.benchmarks.kafka.processes import ProcessTree, Usage

SAMPLE_INTERVAL_S = 0.1
#: The steady part of a run, as shares of its progress.
BEGIN, END = 0.1, 0.95
#: An application that commits nothing for so long is stuck.
STALL_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Sample:
    """One look: when, what is committed (records by topic), how long the output is, what was used so far."""

    time_s: float
    committed: Mapping[str, int]
    output_records: int
    application: Usage
    broker: Usage


@dataclass(frozen=True)
class Steady:
    """What happened in the middle of a run, between two looks that saw a commit."""

    seconds: float
    records: float
    output_records: int
    cpu_s: float
    broker_cpu_s: float


class StuckError(RuntimeError):
    """An application ended, or stopped to commit, before it had read its inputs."""


class Observer:
    """Looks at one application's group and output, as a client that never joins the group."""

    def __init__(self, bootstrap_servers: str, group: str, inputs: Mapping[str, int], output: str) -> None:
        """``inputs``: their topics with the number of records each holds."""
        self._offsets = Offsets(bootstrap_servers, group)
        self._group = group
        self._inputs = inputs
        self._output = output
        self._internal: list[str] = []

    def close(self) -> None:
        self._offsets.close()

    def watch(
        self, application: ProcessTree, broker: ProcessTree, is_alive: Callable[[], bool]
    ) -> list[Sample]:
        """Look until everything is committed, internal topics included. Raises ``StuckError``."""
        samples: list[Sample] = []
        started = changed = time.monotonic()
        while True:
            sample = Sample(
                time.monotonic() - started,
                self._offsets.committed(self._topics()),
                self._offsets.ends([self._output])[self._output],
                application.read(),
                broker.read(),
            )
            if not samples or sample.committed != samples[-1].committed:
                changed = time.monotonic()
            samples.append(sample)
            if self._is_over(sample):
                return samples
            if not is_alive():
                raise StuckError(f"{self._group} ended before its inputs did: {self._shown(sample)}")
            if time.monotonic() > changed + STALL_TIMEOUT_S:
                raise StuckError(
                    f"{self._group} stopped: for {STALL_TIMEOUT_S:g} s it is at {self._shown(sample)}"
                )
            # The pace is fixed, whatever a look costs.
            time.sleep(max(0.0, started + len(samples) * SAMPLE_INTERVAL_S - time.monotonic()))

    def _shown(self, sample: Sample) -> str:
        return ", ".join(
            f"{sample.committed.get(topic, 0):,} of {records:,} {topic}"
            for topic, records in self._inputs.items()
        )

    def _is_over(self, sample: Sample) -> bool:
        if any(sample.committed.get(topic, 0) < records for topic, records in self._inputs.items()):
            return False
        # The inputs are done and what they led to was flushed before: internal topics get no more records.
        ends = self._offsets.ends(self._internal)
        return all(sample.committed[topic] >= end for topic, end in ends.items())

    def _topics(self) -> list[str]:
        """The inputs, and the repartition topics as soon as they are there."""
        if not self._internal:
            self._internal = [
                topic
                for topic in self._offsets.topics()
                if topic.startswith(f"{self._group}-") and topic.endswith("-repartition")
            ]
        return [*self._inputs, *self._internal]


def progress(samples: list[Sample]) -> list[float]:
    """From 0 to 1, of each look: the share of what is committed at the end, in the topic that is furthest behind.

    So a word count is as far as its counts are, not as the splitting of lines that runs ahead of them.
    """
    final = {topic: offset for topic, offset in samples[-1].committed.items() if offset}
    return [
        min((sample.committed.get(topic, 0) / offset for topic, offset in final.items()), default=0.0)
        for sample in samples
    ]


def steady(samples: list[Sample], records: int) -> Steady:
    """The part of a run between ``BEGIN`` and ``END`` of its progress: without start, warm-up and end.

    It begins and ends with the first look that is past the share, which is a look that saw a commit; both ends fall
    alike in the rhythm of commits.
    """
    shares = progress(samples)
    first = next(i for i, share in enumerate(shares) if share >= BEGIN)
    last = next(i for i, share in enumerate(shares) if share >= END)
    if last == first:  # so few records that one commit took them all
        first = max(0, last - 1)
    a, b = samples[first], samples[last]
    return Steady(
        seconds=b.time_s - a.time_s,
        records=(shares[last] - shares[first]) * records,
        output_records=b.output_records - a.output_records,
        cpu_s=b.application.cpu_s - a.application.cpu_s,
        broker_cpu_s=b.broker.cpu_s - a.broker.cpu_s,
    )
