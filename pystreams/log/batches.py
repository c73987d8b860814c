"""Writing records in batches, none of which waits for long."""

from __future__ import annotations

import threading
from functools import partial
from types import TracebackType
from typing import Final, Self

from pystreams.broker.port import Broker
from pystreams.errors import BrokerError, ProductionError, StreamsError
from pystreams.record import Headers

#: What is written together at most.
BATCH_RECORDS: Final = 10_000
BATCH_BYTES: Final = 16 << 20
#: A record waits no longer for others: who writes a few, in a notebook, finds them in the topic.
LINGER_MS: Final = 100


def closed_log(where: str) -> BrokerError:
    """Who uses a log that is closed is told so."""
    return BrokerError("The log is closed", where=where, hint="open it anew: open_log()")


class BatchWriter:
    """Writes records and commits them in batches. Threads may share it.

    A record is in its topic ``LINGER_MS`` after it was sent, after ``flush``, or after ``close``; an error in between
    is raised by the next call. Records before one that is refused stay.
    """

    def __init__(self, broker: Broker, client_id: str) -> None:
        self._atomic = broker.transactional
        self._where = broker.description
        self._new_producer = partial(broker.producer, client_id, client_id)
        self._producer = self._new_producer()
        self._mutex = threading.Lock()
        self._sent = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: StreamsError | None = None
        self._records = 0
        self._bytes = 0
        #: Records so far, and how many of them are in their topics.
        self.sent = self.committed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: Headers,
    ) -> None:
        """Raises what ``Producer.send`` raises, what a commit of earlier records has failed with, and ``BrokerError``
        after ``close``."""
        with self._mutex:
            if self._closed.is_set():
                raise closed_log(self._where)
            self._raise_failure()
            self._producer.send(topic, partition, key, value, timestamp, headers)
            self.sent += 1
            self._records += 1
            self._bytes += len(key or b"") + len(value or b"")
            if headers:
                self._bytes += sum(len(name) + len(content or b"") for name, content in headers)
            if self._records >= BATCH_RECORDS or self._bytes >= BATCH_BYTES:
                self._commit()
            elif self._records == 1:
                self._sent.set()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._commit_in_time, name="pystreams-batches", daemon=True
                )
                self._thread.start()

    def flush(self) -> None:
        """Have all records in their topics. Raises ``ProductionError``, ``BrokerError``: what it says is lost is."""
        with self._mutex:
            self._raise_failure()
            self._commit()

    def renew(self) -> None:
        """Flush, and go on with a producer that knows nothing of the topics so far. Raises what ``flush`` raises."""
        with self._mutex:
            if self._closed.is_set():
                return
            try:
                self._raise_failure()
                self._commit()
            finally:
                self._producer.close()
                self._producer = self._new_producer()

    def close(self) -> None:
        """Flush, and release the producer even if that fails."""
        with self._mutex:
            if self._closed.is_set():
                return
            self._closed.set()
            self._sent.set()
            try:
                self._raise_failure()
                self._commit()
            finally:
                self._producer.close()
        if self._thread is not None:
            self._thread.join()

    def _commit_in_time(self) -> None:
        while True:
            self._sent.wait()
            self._sent.clear()
            if self._closed.wait(LINGER_MS / 1000):
                return
            with self._mutex:
                if self._closed.is_set():
                    return
                try:
                    self._commit()
                except StreamsError as error:
                    self._failure = error

    def _commit(self) -> None:
        records = self._records
        if not records:
            return
        try:
            self._producer.commit({}, None)
        except StreamsError as error:
            self._producer.abort()
            self._records = self._bytes = 0
            raise self._lost(error, records) from error
        # Who interrupts a commit (Ctrl-C) leaves them to the next one.
        self._records = self._bytes = 0
        self.committed += records

    def _lost(self, error: StreamsError, records: int) -> StreamsError:
        """The error, which says which records are concerned: here nobody has them to send them again."""
        if self._atomic:
            what = "The record sent was" if records == 1 else f"The last {records:,} records sent were"
            what += " not written"
        else:
            what = "The record sent" if records == 1 else f"Some of the last {records:,} records sent"
            what += " may not have been written"
        kind = ProductionError if error.action == "redo" else type(error)
        return kind(
            what,
            where=error.where or self._where,
            why="; ".join(filter(None, (error.what, error.why))),
            hint="" if error.action == "redo" else error.hint,
        )

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
