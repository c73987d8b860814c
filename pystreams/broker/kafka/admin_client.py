"""The admin client that all admins of a broker share. It is replaced when it has lost the cluster for good.

librdkafka (2.13 to 2.16 at least) drops all brokers that it knows, and never connects again, if a broker answers a
metadata request with topics but no brokers. A broker that is starting does so. Source: librdkafka's issue 5301.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from pystreams.clock import SystemClock

log = logging.getLogger(__name__)

#: The client has found no broker in time.
_LOST: Final = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT})
#: At most one new client in this time, because many requests fail at the same time, and one client serves them all.
_INTERVAL_MS: Final = 10_000.0


class SharedAdminClient:
    """The present admin client. Threads may share it."""

    def __init__(self, make: Callable[[], AdminClient]) -> None:
        self._make = make
        self._mutex = threading.Lock()
        self._clock = SystemClock()
        #: The former client is kept, because requests of other threads may still use it.
        self._former: AdminClient | None = None
        self.current = make()
        self._made_ms = self._clock.monotonic_ms()

    def failed(self, error: KafkaError) -> None:
        """A request has failed. If no broker was found, the next request goes to a new client, which begins with the
        bootstrap servers: that helps if the client has lost the cluster, and does no harm if the brokers do not
        answer."""
        if error.code() not in _LOST:
            return
        with self._mutex:
            now_ms = self._clock.monotonic_ms()
            if now_ms - self._made_ms >= _INTERVAL_MS:
                log.debug("a new admin client takes the place of one that finds no broker: %s", error.str())
                self._former, self.current = self.current, self._make()
                self._made_ms = now_ms
