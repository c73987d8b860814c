"""A load, workers that churn, and everything that must be true at the end."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pystreams.broker.port import Producer
from tests.kafka.churn.offsets import commits, steps_backward
from tests.kafka.churn.ownership import History, overlaps
from tests.kafka.churn.worker import APPLICATION, BY_DIGIT, BY_KEY, INPUT
from tests.kafka.churn.workers import Workers
from tests.kafka.support import Cluster
from tests.live.support import eventually

PARTITIONS = 8
KEYS = 300
#: A burst of so many records, so often, is about 300 records a second.
BURST, BURST_INTERVAL_S = 15, 0.05
SETTLE_TIMEOUT_S = 240.0


class Load:
    """Writes numbers under random keys, from a thread, until it is told to end; counts what it wrote."""

    def __init__(self, producer: Producer, choose: random.Random) -> None:
        self.truth: Counter[str] = Counter()
        self._producer = producer
        self._choose = choose
        self._end = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()

    def end(self) -> None:
        """Each key gets one more record: what a zombie may have written last is overtaken."""
        self._end.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        self._write([f"k{number}" for number in range(KEYS)])

    def _run(self) -> None:
        try:
            # The pause is the rate: that is what a load is about.
            while not self._end.wait(BURST_INTERVAL_S):
                self._write([f"k{self._choose.randrange(KEYS)}" for _ in range(BURST)])
        except BaseException as error:  # noqa: BLE001 - raised by end
            self._error = error

    def _write(self, keys: list[str]) -> None:
        now_ms = time.time_ns() // 1_000_000
        for key in keys:
            self._producer.send(INPUT, None, key.encode(), b"\0" * 8, now_ms, ())
        self._producer.commit({}, None)
        self.truth.update(keys)


@dataclass(frozen=True)
class Report:
    """What came out of a run that kept all promises."""

    seconds: float
    done: Counter[str]
    records: int
    again_by_key: int
    again_by_digit: int
    intervals: int
    zombie_overlaps: list[float]
    commits: int
    refused: int
    refused_by_coordinator: int
    replaced: int
    zombies: int

    @property
    def zombies_noticed(self) -> bool:
        """Whether a zombie was told that it had been replaced: by a refused commit, or by another answer before it."""
        return self.refused + self.replaced > 0

    def __str__(self) -> str:
        actions = ", ".join(f"{count} {what}" for what, count in sorted(self.done.items()))
        longest = f", the longest {max(self.zombie_overlaps):.2f} s" if self.zombie_overlaps else ""
        return "\n".join(
            [
                f"{self.seconds:.0f} s of churn: {actions}",
                (
                    f"owners: {self.intervals} intervals, 0 overlaps of live members; {len(self.zombie_overlaps)}"
                    f" with a member that had been frozen for too long{longest}"
                ),
                (
                    f"commits: {self.commits}, 0 backward; {self.refused} refused "
                    f"({self.refused_by_coordinator} by the coordinator), {self.replaced} other answers told "
                    f"a zombie, {self.zombies} zombies woke up"
                ),
                (
                    f"records: {self.records:,}, 0 lost; done again: {self.again_by_key / self.records:.2%}"
                    f" in the first count, {self.again_by_digit / self.records:.2%} behind the repartition topic"
                ),
            ]
        )


def run(cluster: Cluster, folder: Path, seconds: float, seed: int) -> Report:
    """Raises ``AssertionError`` for whatever promise is broken."""
    cluster.create(INPUT, BY_KEY, BY_DIGIT, partitions=PARTITIONS)
    workers = Workers(cluster.bootstrap_servers, folder, random.Random(seed))
    with closing(cluster.broker.producer("load", "load")) as producer:
        load = Load(producer, random.Random(seed + 1))
        try:
            try:
                workers.churn(seconds)
                workers.settle()
            finally:
                load.end()
            eventually(lambda: _all_is_committed(cluster, workers), "all is committed", SETTLE_TIMEOUT_S)
            workers.stop_all()
            workers.check()
        finally:
            workers.kill_all()
    return _judge(cluster, workers, load.truth, seconds)


def _all_is_committed(cluster: Cluster, workers: Workers) -> bool:
    workers.check()
    return cluster.all_committed(APPLICATION, INPUT, f"{APPLICATION}-by-digit-repartition")


def _judge(cluster: Cluster, workers: Workers, truth: Counter[str], seconds: float) -> Report:
    digits: Counter[str] = Counter()
    for key, count in truth.items():
        digits[key[-1]] += count
    again = {BY_KEY: _again(cluster, BY_KEY, truth), BY_DIGIT: _again(cluster, BY_DIGIT, digits)}
    histories = workers.histories
    assert overlaps(histories, alive=True) == []
    history = commits(cluster.bootstrap_servers, APPLICATION)
    assert steps_backward(history) == []
    committed = dict(history)
    assert committed == {p: at.offset for p, at in cluster.committed(APPLICATION).items()}
    woken = [name for name in set(workers.zombies) if _told_on(histories[name])]
    refusals = [refusal for name in set(workers.zombies) for refusal in histories[name].refused]
    return Report(
        seconds=seconds,
        done=workers.done,
        records=truth.total(),
        again_by_key=again[BY_KEY],
        again_by_digit=again[BY_DIGIT],
        intervals=sum(len(spans) for h in histories.values() for spans in h.owned.values()),
        zombie_overlaps=[overlap.seconds for overlap in overlaps(histories, alive=False)],
        commits=len(history),
        refused=len(refusals),
        refused_by_coordinator=sum(refusal["sent"] for refusal in refusals),
        replaced=sum(histories[name].replaced for name in set(workers.zombies)),
        zombies=len(woken),
    )


def _told_on(history: History) -> bool:
    """A sign of life after a gap: the process was taken for dead, and came back."""
    return len(history.lived) > 1


def _again(cluster: Cluster, topic: str, truth: Counter[str]) -> int:
    """How much was counted more than once. Nothing may be missing, in no key."""
    found: dict[Any, Any] = cluster.table(topic)
    lost = {key: (found.get(key, 0), count) for key, count in truth.items() if found.get(key, 0) < count}
    assert not lost, f"lost in {topic} (found, written): {lost}"
    assert found.keys() == truth.keys()
    return sum(found.values()) - truth.total()
