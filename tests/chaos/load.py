"""Orders and payments that never stop."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

from pystreams.broker.port import Broker, Producer
from pystreams.errors import StreamsError
from pystreams.serde import serde_for
from tests.chaos.program import CUSTOMERS, ORDERS, PAYMENTS, Order, Payment
from tests.live.support import Log

#: So many orders, so often, are 40 a second, and about as many payments.
BURST, BURST_INTERVAL_S = 8, 0.2
#: Each partition has one of them: a process that has a single task is to have records.
REGIONS = ("east", "north-east", "south", "west")
REGION_OF = {f"customer-{number}": REGIONS[number % len(REGIONS)] for number in range(50)}
#: How much later than its order a payment is: some are too late for it.
PAID_AFTER_MS = (-3_000, 14_000)
#: The customers are known before anything is ordered.
KNOWN_SINCE_MS = 3_600_000


def write_customers(log: Log) -> None:
    since = _now_ms() - KNOWN_SINCE_MS
    log.write(CUSTOMERS, [(customer, region, since) for customer, region in REGION_OF.items()], value=str)


class Load:
    """Writes from a thread, until it is told to end.

    What a broker has got of a burst that failed is in the log, or is not: the truth is computed from the log."""

    def __init__(self, broker: Broker, choose: random.Random) -> None:
        self._broker = broker
        self._choose = choose
        self._orders = 0
        self._order, self._payment = (
            serde_for(kind).serializer(topic) for kind, topic in ((Order, ORDERS), (Payment, PAYMENTS))
        )
        self._end = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load")
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            with closing(self._broker.producer("load", "load")) as producer:
                # The pause is the rate: that is what a load is about.
                while not self._end.wait(BURST_INTERVAL_S):
                    self._write_burst(producer)
        except BaseException as error:  # noqa: BLE001 - raised by end
            self._error = error

    def _write_burst(self, producer: Producer) -> None:
        try:
            for _ in range(BURST):
                self._write_order(producer.send)
            producer.commit({}, None)
        except StreamsError:
            producer.abort()

    def _write_order(self, send: Callable[..., Any]) -> None:
        key = f"o{self._orders}".encode()
        self._orders += 1
        now_ms = _now_ms()
        order = Order(self._choose.choice([*REGION_OF]), self._choose.randint(1, 100_000))
        send(ORDERS, None, key, self._order(order), now_ms, ())
        for number in range(self._choose.choice((0, 1, 1, 2))):
            paid_ms = now_ms + self._choose.randint(*PAID_AFTER_MS)
            send(PAYMENTS, None, key, self._payment(Payment(number)), paid_ms, ())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
