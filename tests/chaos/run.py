"""A load, processes, faults one after the other and two at a time, and the exact comparison at the end."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pystreams.serde import STR, TimeWindowedSerde
from tests.chaos.faults import Fault, Faults, Kind
from tests.chaos.load import Load, write_customers
from tests.chaos.places import Place
from tests.chaos.program import (
    APPLICATION,
    CUSTOMERS,
    INPUTS,
    ORDERS,
    PAID,
    PARTITIONS,
    PAYMENTS,
    REGIONS,
    SPENT,
    WINDOW_MS,
    Order,
    Paid,
    Payment,
    Sum,
)
from tests.chaos.progress import PROGRESS_TIMEOUT_S, OldOffsetsError, Progress
from tests.chaos.truth import Truth, check_pairs, check_sums, compute
from tests.chaos.workers import WORKERS, Workers
from tests.kafka.churn.offsets import commits
from tests.live.support import eventually

DONE_TIMEOUT_S = 300.0

_PAUSE_S = (0.0, 2.0)
#: So often a fault begins while another one lasts.
_TWO_AT_ONCE = 0.3
_OVERLAP_S = (0.0, 3.0)
_RESTARTS_MAX = 3


@dataclass
class Report:
    """What happened, how often, and what came of it."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    orders: int = 0
    payments: int = 0
    pairs: int = 0
    seconds: float = 0.0
    #: Of a broker whose coordinator kept old offsets.
    restarts: int = 0
    #: After a fault, until every partition was processed again.
    longest_pause_s: float = 0.0

    def __str__(self) -> str:
        faults = ", ".join(f"{times} {what}" for what, times in sorted(self.faults.items()))
        restarted = (
            f"\n{self.restarts} times a broker kept old offsets and was restarted" if self.restarts else ""
        )
        ended = "".join(f"\n{times} processes ended {why}" for why, times in sorted(self.ended.items()))
        return (
            f"seed {self.seed}, {self.seconds:.0f} s: {faults}{ended}{restarted}\n"
            f"{self.orders:,} orders, {self.payments:,} payments, {self.pairs:,} pairs: nothing lost, nothing twice\n"
            f"the longest pause after a fault: {self.longest_pause_s:.1f} s"
        )


class Run:
    """One application on one place."""

    def __init__(
        self,
        place: Place,
        folder: Path,
        seed: int,
        broken: str = "none",
        progress_timeout_s: float = PROGRESS_TIMEOUT_S,
        two_at_once: float = _TWO_AT_ONCE,
    ) -> None:
        """``progress_timeout_s`` is for what comes after a fault."""
        self.report = Report(seed)
        self._progress_timeout_s = progress_timeout_s
        self._two_at_once = two_at_once
        self._place = place
        self._choose = random.Random(f"faults {seed}")
        self.workers = Workers(place, folder / "workers", random.Random(f"workers {seed}"), broken)
        self._progress = Progress(place.log)
        self.faults = Faults(place, self.workers, self._progress, self._choose)

    def __call__(self, decks: Iterator[list[Kind]]) -> Report:
        """Raises ``AssertionError`` for whatever promise is broken. Each of ``decks`` has faults in their order."""
        log, began = self._place.log, time.monotonic()
        log.create(*INPUTS, CUSTOMERS, SPENT, PAID, REGIONS, partitions=PARTITIONS)
        write_customers(log)
        try:
            for _ in range(WORKERS):
                self.workers.start()
            self.workers.wait_until_all_run()
            eventually(lambda: log.all_committed(APPLICATION, CUSTOMERS), "the customers are known")
            load = Load(log.broker, random.Random(f"load {self.report.seed}"))
            try:
                self._wait_for_progress()
                self._progress.timeout_s = self._progress_timeout_s
                for deck in decks:
                    self._play(deck)
            finally:
                load.end()
            self._finish()
        except AssertionError as error:
            self.workers.print_stacks()
            raise AssertionError(f"seed {self.report.seed}: {error}") from error
        finally:
            self.workers.kill_all()
        self._compare()
        self.report.ended = self.workers.ended
        self.report.seconds = time.monotonic() - began
        return self.report

    def decks(self, enough: Callable[[], bool]) -> Iterator[list[Kind]]:
        """All kinds of faults, in one random order after the other."""
        for number in count():
            if number and enough():
                return
            kinds = self.faults.kinds()
            self._choose.shuffle(kinds)
            yield kinds

    def _wait_for_progress(self) -> float:
        """Until all partitions are processed again; gives the seconds."""
        began = time.monotonic()
        try:
            self._replace_until_all_grow()
        except OldOffsetsError as error:
            self._restart_coordinator(error)
            self._replace_until_all_grow()
        return time.monotonic() - began

    def _restart_coordinator(self, error: OldOffsetsError) -> None:
        """A coordinator of Kafka 4.3 that takes the end of its first load for that of its second keeps old offsets
        until it is restarted. Raises the error if the newer offsets are not in its log either: then others have lost
        them. With several brokers, another one becomes the coordinator by itself."""
        if len(self._place.brokers) != 1 or self.report.restarts == _RESTARTS_MAX:
            raise error
        broker = self._place.brokers[0]
        kept = dict(commits(broker.server.bootstrap_servers, APPLICATION))
        if any((kept.get(partition) or 0) < offset for partition, offset in error.seen.items()):
            raise error
        broker.restart()
        self.report.restarts += 1

    def _replace_until_all_grow(self) -> None:
        for pause_s in self._progress.all_grow():
            self.workers.replace_the_ended()
            time.sleep(pause_s)

    def _play(self, deck: list[Kind]) -> None:
        waiting = list(deck)
        while waiting:
            at_once = [waiting.pop(0)]
            if waiting and self._choose.random() < self._two_at_once:
                at_once.append(waiting.pop(0))
            waiting += self._endure(at_once)
            pause_s = self._wait_for_progress()
            self.report.longest_pause_s = max(self.report.longest_pause_s, pause_s)
            # The pause until the next fault is random: that is what this is about.
            time.sleep(self._choose.uniform(*_PAUSE_S))

    def _endure(self, kinds: list[Kind]) -> list[Kind]:
        """Have faults begin shortly after each other, and wait until all are healed. Gives those that found nothing to
        harm."""
        now = time.monotonic()
        lasting: list[tuple[float, Kind, Fault]] = []
        without_harm = []
        for kind in kinds:
            lasting.append((now, kind, kind()))
            now += self._choose.uniform(*_OVERLAP_S)
        while lasting:
            lasting.sort(key=lambda fault: fault[0])
            at, kind, fault = lasting.pop(0)
            time.sleep(max(0.0, at - time.monotonic()))
            self.workers.replace_the_ended()
            try:
                lasts_s = next(fault)
            except StopIteration as end:
                self.report.faults.update(end.value)
                if not end.value:
                    without_harm.append(kind)
            else:
                lasting.append((time.monotonic() + lasts_s, kind, fault))
        return without_harm

    def _finish(self) -> None:
        """Everything is processed and committed, and all stop."""
        log = self._place.log
        self.workers.wait_until_all_run()
        topics = [topic for topic in log.admin.partition_counts() if topic.endswith("-repartition")]

        def done() -> bool:
            self.workers.replace_the_ended()
            return log.all_committed(APPLICATION, *INPUTS, *topics)

        eventually(done, "everything is processed and committed", DONE_TIMEOUT_S)
        for worker in list(self.workers.alive):
            self.workers.stop(worker)

    def _compare(self) -> None:
        log = self._place.log
        orders, payments = log.read(ORDERS, value=Order), log.read(PAYMENTS, value=Payment)
        truth: Truth = compute(orders, payments, log.table(CUSTOMERS, value=str))
        spent = log.read(SPENT, value=Sum)
        check_sums(SPENT, ((record.key, record.value) for record in spent), truth.spent)
        paid = log.read(PAID, value=Paid)
        check_pairs(PAID, ((record.key, record.value) for record in paid), truth.paid)
        regions = log.read(REGIONS, key=TimeWindowedSerde(STR, WINDOW_MS), value=Sum)
        check_sums(REGIONS, (((r.key.key, r.key.start), r.value) for r in regions), truth.regions)
        self.report.orders, self.report.payments, self.report.pairs = len(orders), len(payments), len(paid)
