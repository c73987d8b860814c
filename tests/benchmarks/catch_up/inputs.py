"""Orders of some days, a little out of order within each partition, and how many there are in each window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.kafka.inputs import START_MS, Choice, Expected, Source

ORDERS = "bench-purchases"
WINDOW_MS = 300_000
#: Three in ten are written so late at most; the windows' grace is three times as long.
_DISORDER_MS = 20_000
_CITIES = 12
_CUSTOMERS = 2_000


@dataclass
class History:
    """Orders of so many hours. ``sold``: by city and start of the window, how many were made."""

    records: int
    hours: float
    sold: Counter[tuple[str, int]] = field(default_factory=Counter)

    def source(self) -> Source:
        """As a feed writes it."""
        return Source(ORDERS, (ORDERS,), self._write)

    def _write(self, choice: Choice, start_ms: int, _: Expected) -> Iterator[Any]:
        rnd, apart_ms = choice.random.random, self.hours * 3_600_000 / self.records
        for number in range(self.records):
            customer = int(rnd() * _CUSTOMERS)
            city = f"city-{customer % _CITIES}"
            late_ms = rnd() * _DISORDER_MS if rnd() < 0.3 else 0
            time = start_ms + WINDOW_MS + int(number * apart_ms - late_ms)
            self.sold[city, time - time % WINDOW_MS] += 1
            partition = int(rnd() * choice.partitions)
            purchase = b"customer-%d %s" % (customer, city.encode())
            yield ORDERS, purchase, b"%d" % number, partition, None, None, time

    @property
    def begin_ms(self) -> int:
        """The time of the first order."""
        return START_MS + WINDOW_MS
