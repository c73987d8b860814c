"""How an application catches up, seen from outside: the stream time of each partition, memory, state on the disk."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

from pystreams.broker.kafka import KafkaBroker
from pystreams.engine.offset_metadata import OffsetMetadata
from pystreams.ids import TopicPartition
from tests.benchmarks.kafka.observer import STALL_TIMEOUT_S, StuckError
from tests.benchmarks.kafka.offsets import Offsets
from tests.benchmarks.kafka.processes import ProcessTree

_INTERVAL_S = 0.2


@dataclass(frozen=True)
class Look:
    """What there was at a moment. ``times``: by topic and partition, the greatest time that is committed."""

    time_s: float
    share: float
    times: Mapping[TopicPartition, int]
    state_bytes: int
    peak_rss_bytes: int


class Watch:
    """Looks at one application's group and folder, as a client that never joins the group."""

    def __init__(self, bootstrap_servers: str, group: str, inputs: Collection[str], state: Path) -> None:
        self._group = group
        self._inputs = inputs
        self._state = state
        self._stack = ExitStack()
        self._offsets = self._stack.enter_context(closing(Offsets(bootstrap_servers, group)))
        broker = self._stack.enter_context(closing(KafkaBroker(bootstrap_servers)))
        self._admin = self._stack.enter_context(closing(broker.admin()))

    def close(self) -> None:
        self._stack.close()

    def until_caught_up(
        self, application: ProcessTree, is_alive: Callable[[], bool], on_look: Callable[[Look], None]
    ) -> list[Look]:
        """Look until everything is committed, internal topics included. Raises ``StuckError``."""
        looks: list[Look] = []
        started = changed = time.monotonic()
        whole = self._offsets.ends(self._inputs)
        before: Mapping[str, int] = {}
        while True:
            committed = self._admin.group_offsets(self._group)
            by_topic = Counter(dict.fromkeys(whole, 0))
            for at, position in committed.items():
                by_topic[at.topic] += position.offset
            now = time.monotonic()
            looks.append(
                Look(
                    now - started,
                    sum(by_topic[topic] for topic in whole) / max(1, sum(whole.values())),
                    {at: OffsetMetadata.decode(one.metadata).partition_time for at, one in committed.items()},
                    _size(self._state),
                    application.read().peak_rss_bytes,
                )
            )
            on_look(looks[-1])
            # The inputs first: what they led to was written before they were committed.
            if all(by_topic[topic] >= end for topic, end in (whole | self._internal_ends()).items()):
                return looks
            if by_topic != before:
                before, changed = by_topic, now
            if not is_alive():
                raise StuckError(f"{self._group} ended before its inputs did: {dict(by_topic)} of {whole}")
            if now > changed + STALL_TIMEOUT_S:
                raise StuckError(
                    f"{self._group} stopped: for {STALL_TIMEOUT_S:g} s it is at {dict(by_topic)} of {whole}"
                )
            time.sleep(_INTERVAL_S)

    def _internal_ends(self) -> dict[str, int]:
        names = self._offsets.topics()
        return self._offsets.ends(
            [name for name in names if name.startswith(f"{self._group}-") and name.endswith("-repartition")]
        )


def spread_ms(looks: Collection[Look], topic: str, begin_ms: int, partitions: int) -> int:
    """How far the partitions of a topic were apart in time at the most."""
    greatest = 0
    for look in looks:
        times = [
            max(begin_ms, look.times.get(TopicPartition(topic, number), -1)) for number in range(partitions)
        ]
        greatest = max(greatest, max(times) - min(times))
    return greatest


def _size(folder: Path) -> int:
    """Bytes below a folder in which files come and go."""
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                size += (Path(path) / name).stat().st_size
    return size
