"""Writes records in batches, with a short maximum delay."""

from __future__ import annotations

import threading
from functools import partial
from types import TracebackType
from typing import Final, Self

from pystreams.broker.port import Broker
from pystreams.errors import BrokerError, ProductionError, StreamsError
from pystreams.record import Headers

#: The maximum number of records in a batch.
BATCH_RECORDS: Final = 10_000
BATCH_BYTES: Final = 16 << 20
#: The maximum delay of a record, so that a few records that a notebook writes are soon in the topic.
LINGER_MS: Final = 100


def closed_log(where: str) -> BrokerError:
    """The error for using a closed log."""
    return BrokerError("The log is closed", where=where, hint="open it again: open_log()")


class BatchWriter:
    """Writes records and commits them in batches. Threads may share it.

    A record is in its topic at the latest ``LINGER_MS`` after ``send``, or after ``flush`` or ``close``; the next call
    raises an error that occurred in between. Records before a refused one stay in the topic.
    """

    def __init__(self, broker: Broker, client_id: str) -> None:
        self._atomic = broker.transactional
        self._where = broker.description
        self._new_producer = partial(broker.producer, client_id)
        self._producer = self._new_producer()
        self._mutex = threading.Lock()
        self._sent = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: StreamsError | None = None
        self._records = 0
        self._bytes = 0
        #: The number of records, and how many of them are in their topics.
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
        """Raises the errors of ``Producer.send``, the error of a failed commit of earlier records, and ``BrokerError``
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
        """Write all records to their topics. Raises ``ProductionError``, ``BrokerError``; the message names the lost
        records."""
        with self._mutex:
            self._raise_failure()
            self._commit()

    def renew(self) -> None:
        """Flush, and replace the producer by one without cached topics. Raises the errors of ``flush``."""
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
        # If a commit is interrupted (Ctrl-C), the next one writes its records.
        self._records = self._bytes = 0
        self.committed += records

    def _lost(self, error: StreamsError, records: int) -> StreamsError:
        """The error, with the records that are concerned: here, no caller can send them again."""
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
