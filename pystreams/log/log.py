"""An open log: its topics, and typed records to and from them."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypedDict, TypeVar, Unpack, overload

from pystreams.broker.connecting import open_broker
from pystreams.broker.port import Admin, Broker, TopicDescription
from pystreams.clock import SystemClock
from pystreams.config import StreamsConfig
from pystreams.config.values import as_text
from pystreams.errors import ConfigError, StreamsError
from pystreams.log.batches import BatchWriter, closed_log
from pystreams.log.connection import log_config
from pystreams.log.output import HeadersGiven, Produced, TopicOutput
from pystreams.log.positions import Place, check_place, positions_at
from pystreams.log.records import CLIENT_ID, BadRecords, Records, Selection
from pystreams.log.topics import (
    TopicInfo,
    chosen_partitions,
    create_missing,
    existing_topic,
    is_internal,
    partitions_of,
    topic_info,
)
from pystreams.record import NO_HEADERS
from pystreams.serde import BYTES, serde_for
from pystreams.serde.base import AnySerde, TypeOrSerde
from pystreams.times import Duration, Time, to_ms

_IF_MISSING: Final = (
    "create the first topic, and the log with it: log.create_topic(NAME); if there is a log somewhere else, go to its"
    " folder, or give the file: open_log(FILE)"
)

K = TypeVar("K")
V = TypeVar("V")


class ReadOptions(TypedDict, total=False):
    """The arguments of ``Log.consume`` besides types."""

    from_: Place
    until: Place
    follow: bool
    timeout: Duration | None
    limit: int | None
    partitions: int | Collection[int] | None
    deserialization_exception_handler: BadRecords


def open_log(path: str | Path | None = None, *, bootstrap_servers: str | None = None, **settings: Any) -> Log:
    """Open a log, to create topics, write records and read them.

    ``path`` is the file of an embedded log (default: from the environment, else ``.pystreams/log.db``), which is
    created with the first topic; ``bootstrap_servers`` are the addresses of a Kafka cluster (``localhost:9092``).
    ``settings`` are those of the connection and of serdes, as for ``App`` (``sasl_mechanism``,
    ``schema_registry_url``); settings that are not given come from the environment (``PYSTREAMS_BOOTSTRAP_SERVERS``).
    As in::

        with open_log() as log:
            log.create_topic("orders")
            log.produce("orders", "o-1", {"amount": 3})
            for record in log.consume("orders", key=str, value=dict):
                print(record.offset, record.key, record.value)

    Raises ``ConfigError`` for wrong settings, ``BrokerError`` if Kafka cannot be reached or refuses the login.
    """
    return Log(log_config({"embedded_log": path, "bootstrap_servers": bootstrap_servers, **settings}))


class Log:
    """An open log: see ``open_log``. Threads may share it.

    It is closed at the end of a ``with``, by ``close``, or at the end of the program. Closing writes all produced
    records, even if the program fails.
    """

    def __init__(self, config: StreamsConfig) -> None:
        self._config = config
        self._clock = SystemClock()
        self._mutex = threading.RLock()
        self._broker: Broker | None = None
        self._writer: BatchWriter | None = None
        self._outputs: dict[str, TopicOutput] = {}
        self._closed = False
        if config.on_kafka or config.embedded_log.exists():
            self._open(create=False)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Log({self.description!r})"

    @property
    def description(self) -> str:
        """The log's kind and address, for people."""
        servers = self._config.bootstrap_servers
        return f"embedded log at {self._config.embedded_log}" if servers is None else f"Kafka at {servers}"

    # Topics

    def topics(self, *, internal: bool = False) -> list[str]:
        """The names of the topics, sorted; with ``internal`` also changelogs and repartition topics."""
        with self._admin() as admin:
            return sorted(name for name in admin.partition_counts() if internal or not is_internal(name))

    def describe_topic(self, name: str) -> TopicInfo:
        """A topic's partitions, offsets and settings. Raises ``TopicError`` if it does not exist."""
        self.flush()
        with self._admin() as admin:
            return topic_info(admin, self._existing(admin, name))

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        *,
        if_not_exists: bool = False,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a topic; ``config`` has Kafka's topic settings (``{"retention.ms": -1}`` keeps old records).

        ``partitions`` None: 1. With ``if_not_exists`` an existing topic stays unchanged, with its own settings. Raises
        ``TopicError`` if it exists, or has another partition count than ``partitions``; ``ConfigError``.
        """
        texts = {setting: as_text(value) for setting, value in (config or {}).items()}
        with self._admin(create=True) as admin:
            create_missing(admin, [name], partitions, texts, self.description, if_not_exists=if_not_exists)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all its records. Raises ``TopicError`` if it does not exist."""
        with self._mutex:
            # A topic that is created again under this name is a different one: the producer must forget the old one.
            if self._writer is not None:
                self._writer.renew()
            with self._admin() as admin:
                self._existing(admin, name)
                admin.delete_topics([name])
            self._outputs.clear()

    def delete_records(self, topic: str, before: Place) -> int:
        """Delete the records before a place (see ``consume``), as retention does. Returns the number of deleted
        offsets. Raises ``TopicError``, ``ConfigError``."""
        self.flush()
        described = self._topic(topic)
        check_place(before, described)
        with self._admin() as admin:
            partitions = partitions_of(described)
            starts = admin.beginning_offsets(partitions)
            ends = {p: end for p, end in positions_at(admin, partitions, before).items() if end > starts[p]}
            admin.delete_records(ends).wait()
        return sum(end - starts[partition] for partition, end in ends.items())

    # Records

    def produce(
        self,
        topic: str,
        *key_and_value: Any,
        key: Any = None,
        value: Any = None,
        timestamp: Time | None = None,
        headers: HeadersGiven = NO_HEADERS,
        partition: int | None = None,
    ) -> None:
        """Write ``(value)`` without a key, or ``(key, value)``; None is null, which deletes a key from a table.

        ``key=`` and ``value=`` are types or serdes, as in ``stream``; by default they are the types of the objects.
        ``timestamp`` is the event time (ms or a datetime; default: now). ``partition`` is by default the one of the
        key's hash, as for every Kafka producer.

        Records are written in batches: the record is in the topic after a tenth of a second, or after ``flush``. Raises
        ``SerializationError``, ``TopicError``, ``ProductionError``; the latter also says which earlier records are
        lost.
        """
        if not 1 <= len(key_and_value) <= 2:
            raise TypeError(
                "produce takes a value, or a key and a value, after the topic: produce('orders', 'o-1', order);"
                " key= and value= are their types"
            )
        content_key, content_value = (None, *key_and_value)[-2:]
        written = self._output(topic).written(
            content_key, content_value, key, value, timestamp, headers, partition
        )
        self._batches().send(*written)

    def produce_many(
        self, topic: str, records: Iterable[Produced], *, key: Any = None, value: Any = None
    ) -> int:
        """Write many records. Returns their number when all are in the topic.

        Each is a tuple (key, value), (key, value, timestamp) or (key, value, timestamp, headers), a ``Record``, or a
        record of ``consume``; ``key=`` and ``value=`` are types, as in ``produce``. Raises the errors of ``produce``
        and of ``records``; the records before the failing one stay in the topic.
        """
        output, batches, count = self._output(topic), self._batches(), 0
        try:
            for record in records:
                batches.send(*output.of_record(record, key, value))
                count += 1
        except StreamsError as error:
            error.extend(where=f"record {count + 1:,} of produce_many")
            raise
        finally:
            batches.flush()
        return count

    def flush(self) -> None:
        """Write all produced records to their topics. Raises ``ProductionError``, ``BrokerError``."""
        if self._writer is not None:
            self._writer.flush()

    @overload
    def consume(
        self, topic: str, *, key: TypeOrSerde[K], value: TypeOrSerde[V], **options: Unpack[ReadOptions]
    ) -> Records[K, V]: ...
    @overload
    def consume(
        self, topic: str, *, value: TypeOrSerde[V], **options: Unpack[ReadOptions]
    ) -> Records[bytes, V]: ...
    @overload
    def consume(
        self, topic: str, *, key: TypeOrSerde[K], **options: Unpack[ReadOptions]
    ) -> Records[K, bytes]: ...
    @overload
    def consume(self, topic: str, **options: Unpack[ReadOptions]) -> Records[bytes, bytes]: ...
    @overload
    def consume(
        self, topic: str, *, key: Any = ..., value: Any = ..., **options: Unpack[ReadOptions]
    ) -> Records[Any, Any]: ...
    def consume(
        self,
        topic: str,
        *,
        key: Any = None,
        value: Any = None,
        from_: Place = "earliest",
        until: Place = "latest",
        follow: bool = False,
        timeout: Duration | None = None,
        limit: int | None = None,
        partitions: int | Collection[int] | None = None,
        deserialization_exception_handler: BadRecords = "fail",
    ) -> Records[Any, Any]:
        """An iterable of a topic's records: each has topic, partition, offset, timestamp (ms), key, value and headers.

        ``key=`` and ``value=`` are types or serdes, as in ``stream``; the default is bytes. ``from_`` and ``until``
        (which is exclusive) are ``earliest``, ``latest``, an event time (a datetime, ms, ISO 8601), -N (N records
        before the end of each partition), or offsets by partition. With ``follow`` the iteration continues with new
        records, until none arrives for ``timeout`` (a timedelta, or ms). ``limit`` is the maximum number of records.

        Records of uncommitted transactions are left out. A record that cannot be deserialized raises
        ``SerializationError``; with ``deserialization_exception_handler="continue"`` it is logged and left out. Raises
        ``TopicError``, ``ConfigError``.
        """
        _check_options(until, follow, timeout, deserialization_exception_handler)
        described = self._topic(topic)
        for place in (from_, until):
            check_place(place, described)
        numbers = [partitions] if isinstance(partitions, int) else partitions
        selection = Selection(
            described,
            chosen_partitions(described, numbers),
            from_,
            until,
            follow,
            None if timeout is None else to_ms(timeout),
            limit,
        )
        return Records(
            self._flushed,
            selection,
            self._serde(key),
            self._serde(value),
            deserialization_exception_handler,
        )

    def close(self) -> None:
        """Write all produced records, and close the connections. Raises the errors of ``flush``."""
        with self._mutex:
            self._closed = True
            atexit.unregister(self.close)
            try:
                if self._writer is not None:
                    self._writer.close()
            finally:
                broker, self._broker = self._broker, None
                if broker is not None:
                    broker.close()

    def _open(self, *, create: bool) -> Broker:
        with self._mutex:
            if self._closed:
                raise closed_log(self.description)
            if self._broker is None:
                self._broker = open_broker(
                    self._config, self._clock, if_missing=None if create else _IF_MISSING
                )
            return self._broker

    @contextmanager
    def _admin(self, *, create: bool = False) -> Iterator[Admin]:
        with closing(self._open(create=create).admin()) as admin:
            yield admin

    def _topic(self, name: str) -> TopicDescription:
        with self._admin() as admin:
            return self._existing(admin, name)

    def _existing(self, admin: Admin, name: str) -> TopicDescription:
        return existing_topic(admin, name, self.description, "log.create_topic({!r})")

    def _serde(self, given: Any) -> AnySerde:
        serde: AnySerde = BYTES if given is None else serde_for(given)
        return serde.configured(self._config.serde_settings)

    def _flushed(self) -> Broker:
        """The broker, for readers, with all produced records written."""
        self.flush()
        return self._open(create=False)

    def _output(self, topic: str) -> TopicOutput:
        output = self._outputs.get(topic)
        if output is None:
            output = TopicOutput(self._topic(topic), self._config.serde_settings, self._clock)
            self._outputs[topic] = output
        return output

    def _batches(self) -> BatchWriter:
        writer = self._writer
        if writer is None:
            with self._mutex:
                writer = self._writer = self._writer or BatchWriter(self._open(create=False), CLIENT_ID)
        return writer


def _check_options(
    until: Place, follow: bool, timeout: Duration | None, deserialization_exception_handler: object
) -> None:
    if follow and until != "latest":
        raise ConfigError("follow=True never ends, but until= does", hint="leave out one of them")
    if timeout is not None and not follow:
        raise ConfigError(
            "timeout= is for follow=True", why="without it, reading ends at the end of the topic"
        )
    if deserialization_exception_handler not in ("fail", "continue"):
        raise ConfigError(
            f"deserialization_exception_handler cannot be {deserialization_exception_handler!r}",
            why="there is no dead-letter topic for records that are read here",
            hint="give fail, or continue, which logs the record and leaves it out",
        )
