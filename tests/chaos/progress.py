"""How far the group has processed and committed its partitions: those of the input, and of repartition topics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from pystreams.errors import BrokerError
from pystreams.ids import TopicPartition
from tests.chaos.program import APPLICATION, CUSTOMERS, INPUTS, PARTITIONS
from tests.live.support import Log

#: Within this time after a fault every partition is processed again.
PROGRESS_TIMEOUT_S = 120.0
LOOK_S = 0.2
#: So long a coordinator that has started may answer with old offsets, on a busy machine.
LOADING_S = 60.0


class OldOffsetsError(AssertionError):
    """A coordinator goes on answering with old offsets. ``seen`` are the highest that it had before."""

    def __init__(self, back: Mapping[TopicPartition, tuple[int, int | None]]) -> None:
        super().__init__(f"offsets went back: {back}")
        self.seen = {partition: offset for partition, (offset, _) in back.items()}


class Progress:
    """Asks the log from outside."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.timeout_s = PROGRESS_TIMEOUT_S
        self._inputs = [TopicPartition(topic, number) for topic in INPUTS for number in range(PARTITIONS)]
        self._seen: dict[TopicPartition, int] = {}
        #: Since when some are lower than they were.
        self._back_since_s: float | None = None

    def all_grow(self) -> Iterator[float]:
        """Pauses in seconds, until all partitions have grown. Raises ``AssertionError`` if one does not in time, and
        ``OldOffsetsError`` if offsets stay below those that were seen before."""
        began = time.monotonic()
        before: dict[TopicPartition, int] | None = None
        while True:
            now = self._look()
            before = before or now
            standing = None if now is None or before is None else _standing(before, now)
            if standing == []:
                return
            assert time.monotonic() - began < self.timeout_s, (
                f"not within {self.timeout_s:g} s processed: {standing} of {before}"
            )
            yield LOOK_S

    def _look(self) -> dict[TopicPartition, int] | None:
        """The committed offsets; None while no broker answers, or one that has just started does not know them.

        Raises ``OldOffsetsError`` if one went back for longer than a coordinator of Kafka 4.3 may take to start: it may
        load its offsets twice, and when the first load has ended it answers without those of the second, or with old
        ones.
        """
        try:
            committed = self._log.admin.group_offsets(APPLICATION, stable=False)
        except BrokerError:
            return None
        found = dict.fromkeys(self._inputs, 0) | {p: at.offset for p, at in committed.items()}
        back = {p: (offset, found.get(p)) for p, offset in self._seen.items() if found.get(p, 0) < offset}
        if back:
            self._back_since_s = self._back_since_s or time.monotonic()
            if time.monotonic() - self._back_since_s > LOADING_S:
                self._back_since_s = None
                raise OldOffsetsError(back)
            return None
        self._seen, self._back_since_s = found, None
        return found


def _standing(before: dict[TopicPartition, int], now: dict[TopicPartition, int]) -> list[TopicPartition]:
    """The partitions that have not grown. The customers do not; and of a repartition topic with few keys some
    partitions are empty."""
    waited_for = [p for p, at in before.items() if p.topic in INPUTS or (at and p.topic != CUSTOMERS)]
    return [partition for partition in waited_for if now[partition] <= before[partition]]
