"""Logs as sources: Kafka, and the embedded log. Ranges end by position, never by silence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pystreams.backfill.exchange.rows import Arrow, record_rows
from pystreams.backfill.locations import absolute
from pystreams.backfill.sources.last_records import last_before
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.backfill.sources.source import BATCH_ROWS, Span, within
from pystreams.broker.embedded import EmbeddedBroker
from pystreams.broker.missing_log import check_embedded_log
from pystreams.broker.port import Admin, Broker, ConsumerPurpose
from pystreams.clock import Deadline, SystemClock
from pystreams.config.client_settings import client_settings
from pystreams.errors import BrokerUnavailableError, OffsetOutOfRangeError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers, RecordBatch

if TYPE_CHECKING:
    from pystreams.broker.kafka.broker import KafkaBroker
    from pystreams.broker.kafka.oauth import TokenProvider

IsolationLevel = Literal["read_committed", "read_uncommitted"]

_POLL_MS: Final = 100
#: If no record of a log arrives for this time, although there must be more, it cannot be reached.
_SILENCE_MS_MAX: Final = 60_000
#: Values and keys of a batch; one record may be larger.
_BATCH_BYTES_MAX: Final = 16 << 20

_CLIENT_ID: Final = "pystreams-backfill"


@dataclass(frozen=True)
class EmbeddedSource:
    """The topics of an embedded log. On a cluster its file must be on a file system that every worker has."""

    path: str

    def __post_init__(self) -> None:
        # Workers may run in other folders.
        object.__setattr__(self, "path", absolute(self.path))

    @property
    def description(self) -> str:
        return f"embedded log at {self.path}"

    @property
    def approximate(self) -> bool:
        return False

    def partitions(self) -> Mapping[str, int]:
        with self._admin() as admin:
            return {name: topic.partitions for name, topic in admin.describe_topics().items()}

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        with self._admin() as admin:
            return admin.beginning_offsets(partitions)

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        with self._admin() as admin:
            return admin.end_offsets(partitions)

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        with self._admin() as admin:
            return admin.offsets_for_times(dict.fromkeys(partitions, time_ms))

    def missing(self, input: InputRange) -> list[Span]:
        """A log that still has its beginning has all."""
        return []

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        with closing(self._open()) as broker:
            return last_before(broker, ends)

    def read(self, input: InputRange) -> Iterator[Arrow]:
        with closing(self._open()) as broker:
            yield from read_log(broker, input)

    @contextmanager
    def _admin(self) -> Iterator[Admin]:
        with closing(self._open()) as broker, closing(broker.admin()) as admin:
            yield admin

    def _open(self) -> EmbeddedBroker:
        check_embedded_log(
            Path(self.path), "name its file; on a cluster it must be on a file system that every worker has"
        )
        return EmbeddedBroker(self.path)


@dataclass(frozen=True)
class KafkaSource:
    """The topics of a Kafka cluster; each worker connects by itself, no connector is needed.

    ``client_settings`` has Java's settings by name, with Java's prefixes: login and encryption, fetch sizes (those of
    the main consumer count). ``isolation_level`` None is what they say, which is Java's default, ``read_uncommitted``,
    if they say nothing: a backfill reads what the live application would. Under ``read_committed`` the end of a
    partition is its last stable offset. Passwords are in it when it is pickled, and never in its ``repr``.
    """

    bootstrap_servers: str
    client_settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    isolation_level: IsolationLevel | None = None
    oauth_token_provider: TokenProvider | None = field(default=None, repr=False)

    @property
    def description(self) -> str:
        return f"Kafka at {self.bootstrap_servers}"

    @property
    def approximate(self) -> bool:
        return False

    def partitions(self) -> Mapping[str, int]:
        with closing(self.connect()) as broker:
            return broker.admin().partition_counts()

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        with closing(self.connect()) as broker:
            return broker.admin().beginning_offsets(partitions)

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        with closing(self.connect()) as broker:
            return _ends(broker, partitions)

    def offsets_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        with closing(self.connect()) as broker:
            # Ends first: records that arrive in between are at or after them, as are uncommitted ones.
            ends = _ends(broker, partitions)
            found = broker.admin().offsets_for_times(dict.fromkeys(partitions, time_ms))
        return {partition: min(found[partition], end) for partition, end in ends.items()}

    def missing(self, input: InputRange) -> list[Span]:
        """A log that still has its beginning has all."""
        return []

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        with closing(self.connect()) as broker:
            return last_before(broker, ends)

    def read(self, input: InputRange) -> Iterator[Arrow]:
        with closing(self.connect()) as broker:
            yield from read_log(broker, input)

    def connect(self) -> KafkaBroker:
        """Raises ``BrokerUnavailableError``, ``BrokerError`` for a login that is refused, ``ConfigError``."""
        from pystreams.broker.kafka import KafkaBroker

        settings = dict(client_settings(self.client_settings))
        if self.isolation_level is not None:
            settings["main.consumer.isolation.level"] = self.isolation_level
        return KafkaBroker(
            self.bootstrap_servers,
            client_settings=settings,
            oauth_token_provider=self.oauth_token_provider,
            client_id=_CLIENT_ID,
        )


def _ends(broker: KafkaBroker, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The offsets at which a consumer of the broker stops. Open transactions after them are not waited for."""
    admin = broker.admin()
    return admin.stable_end_offsets(partitions) if broker.reads_committed else admin.end_offsets(partitions)


def read_log(broker: Broker, input: InputRange, purpose: ConsumerPurpose = "main") -> Iterator[Arrow]:
    """Read a range of a log. The consumer's position decides about its end, because compacted records and transaction
    markers leave gaps. For the ``purpose`` ``restore`` it reads committed records only.

    Raises ``OffsetOutOfRangeError`` for records that are gone, ``BrokerUnavailableError`` if the log falls silent.
    """
    if input.start >= input.end:
        return
    partition = input.partition
    with ExitStack() as stack:
        admin = stack.enter_context(closing(broker.admin()))
        _require_beginning(input, admin.beginning_offsets([partition])[partition])
        consumer = stack.enter_context(closing(broker.consumer(_CLIENT_ID, purpose)))
        consumer.assign({partition: input.start})
        gathered = _Gathered()
        silence = Deadline(SystemClock(), _SILENCE_MS_MAX)
        while (position := consumer.position(partition)) < input.end:
            try:
                batches = consumer.poll(_POLL_MS)
            except OffsetOutOfRangeError:
                left = InputRange(partition, position, input.end)
                _require_beginning(left, admin.beginning_offsets([partition])[partition])
                raise
            for batch in batches:
                if (rows := gathered.add(batch)) is not None:
                    yield within(rows, input)
            if batches or consumer.position(partition) > position:
                silence = Deadline(SystemClock(), _SILENCE_MS_MAX)
            elif silence.expired():
                raise BrokerUnavailableError(
                    f"nothing more comes of {partition}",
                    where=f"{broker.description}, position {position} of {input.end}",
                    why=f"nothing arrived for {_SILENCE_MS_MAX // 1000} s",
                    hint="check that the partition's leader is up, and that no transaction has been open there for as "
                    "long",
                )
        if (rows := gathered.take()) is not None:
            yield within(rows, input)


def _require_beginning(input: InputRange, beginning: int) -> None:
    if input.start < beginning:
        raise OffsetOutOfRangeError(
            f"records of {input.partition} were deleted before they could be read",
            where=f"offsets {input.start} to {min(beginning, input.end)} (exclusive)",
            hint="read them from an archive, or begin a new backfill with the remaining records",
        )


class _Gathered:
    """Small batches of one partition on their way to become one that is worth a column."""

    def __init__(self) -> None:
        self._batches: list[RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def add(self, batch: RecordBatch) -> Arrow | None:
        """Add a batch, and return the gathered rows once they are enough."""
        self._batches.append(batch)
        self._rows += len(batch)
        self._bytes += sum(map(len, filter(None, chain(batch.keys, batch.values))))
        return self.take() if self._rows >= BATCH_ROWS or self._bytes >= _BATCH_BYTES_MAX else None

    def take(self) -> Arrow | None:
        """The gathered rows; None if there are none."""
        batches, self._batches, self._rows, self._bytes = self._batches, [], 0, 0
        if not batches:
            return None
        return record_rows(batches[0] if len(batches) == 1 else _joined(batches))


def _joined(batches: Sequence[RecordBatch]) -> RecordBatch:
    first = batches[0]
    headers: list[Headers] | None = None
    if any(batch.headers is not None for batch in batches):
        headers = [*chain.from_iterable(batch.headers or [NO_HEADERS] * len(batch) for batch in batches)]
    return RecordBatch(
        first.topic,
        first.partition,
        [*chain.from_iterable(batch.keys for batch in batches)],
        [*chain.from_iterable(batch.values for batch in batches)],
        [*chain.from_iterable(batch.timestamps for batch in batches)],
        [*chain.from_iterable(batch.offsets for batch in batches)],
        headers,
        batches[-1].next_offset,
    )
