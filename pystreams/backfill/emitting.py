"""Brings the records that a backfill wrote for sinks to where they are wanted: Parquet files, or the topics themselves.

Each record gets there once, however often it is tried. Partitions are written where the executor works.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from os import PathLike, fspath
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from pystreams.backfill.archive import FILE_SCHEMA
from pystreams.backfill.checks import require_no_members
from pystreams.backfill.records import Arrow, headers_of, pc
from pystreams.backfill.result import BackfillResult
from pystreams.broker.port import Admin, Broker, TopicSpec, TransactionalProducer
from pystreams.clock import Clock, SystemClock
from pystreams.errors import RetentionError, TopicError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS
from pystreams.runtime.retention_check import retention_of

#: A transaction holds about so many records: that is what a worker that is killed does again.
TRANSACTION_RECORDS = 20_000

_EMITTED_TOPIC = {"cleanup.policy": "compact", "retention.ms": "-1"}
_MARK_KEY = b"emitted"
_POLL_MS = 100.0


def emitted_topic(application_id: str, topic: str) -> str:
    """Where it stands how far emitting to a topic is. It has a partition for each of the topic's: what somebody left
    open who was killed at one holds back nobody at another."""
    return f"{application_id}-backfill-emitted-{topic}"


def emit(
    result: BackfillResult, to: str | PathLike[str] | Broker, clock: Clock | None = None
) -> dict[str, int]:
    """Write the records of all sinks; gives their number by topic. Done again, it changes nothing.

    ``to`` is a folder (a path, or a URL of a file system that pyarrow knows) for an archive of Parquet files that a
    ``ParquetSource`` reads, or a log whose topics of these names get the records, in transactions. To topics: before
    the hand-over, so that what the live application writes comes after it.

    Raises ``BrokerError`` while the application runs on that log, ``TopicError`` for topics that do not fit,
    ``RetentionError`` for those that would delete the records right after they are written.
    """
    topics = sorted({partition.topic for partition in result.written()})
    if isinstance(to, str | PathLike):
        archive = EmitToFolder(fspath(to), result.manifest.backfill_id)
        return {topic: _each(result, topic, archive.to(topic)) for topic in topics}
    application_id = result.plan.application_id
    with closing(to.admin()) as admin:
        require_no_members(admin, application_id, to.description)
        found = _checked(result, topics, to, admin, clock or SystemClock())
        admin.create_topics(
            [
                TopicSpec(emitted_topic(application_id, topic), found[topic], _EMITTED_TOPIC)
                for topic in topics
            ]
        )
    return {
        topic: _each(
            result, topic, EmitToTopic(to.opener(), application_id, topic, result.manifest.backfill_id)
        )
        for topic in topics
    }


def _each(result: BackfillResult, topic: str, work: Callable[[int, Iterator[Arrow]], bytes]) -> int:
    return sum(int(count) for count in result.for_each_partition(result.sink_rows(topic), work))


# Checks


def _checked(
    result: BackfillResult, topics: list[str], broker: Broker, admin: Admin, clock: Clock
) -> dict[str, int]:
    """The partition counts of the topics, which can take the records."""
    found = admin.describe_topics(topics)
    for topic in topics:
        wanted, exact = result.sink_rows(topic).partitions, result.plan.partitions.get(topic)
        count = found[topic].partitions if topic in found else 0
        if count < wanted or (exact is not None and count != exact):
            raise TopicError(
                f"topic {topic} has {count} partitions, the backfill wrote {exact or wanted}",
                where=broker.description,
                hint=f"create it with as many, or tell the backfill how many it has (partitions={{{topic!r}: ...}})",
            )
        limit = retention_of(found[topic].config)
        oldest_ms = None if limit is None else _oldest(result, topic)
        if limit is not None and oldest_ms is not None and clock.now_ms() - oldest_ms > limit:
            raise RetentionError(
                f"topic {topic} would delete what is emitted right after it is written",
                where=broker.description,
                why=f"its retention.ms is {limit}, a record is {clock.now_ms() - oldest_ms} ms old",
                hint=f"pystreams topics alter {topic} --config retention.ms=-1",
            )
    return {topic: found[topic].partitions for topic in topics}


def _oldest(result: BackfillResult, topic: str) -> int | None:
    """The least timestamp (ms) of the records for a topic."""
    found = result.for_each_partition(result.sink_rows(topic), _least_timestamp)
    return min((int(text) for text in found if text), default=None)


def _least_timestamp(_: int, batches: Iterator[Arrow]) -> bytes:
    least = min(
        (pc.min(batch.column("timestamp")).as_py() for batch in batches if batch.num_rows), default=None
    )
    return b"" if least is None else str(least).encode()


# To Parquet


@dataclass(frozen=True, slots=True)
class EmitToFolder:
    """An ``executor.PartitionFunction`` once it has a topic: one file for each partition, there when it is whole."""

    location: str
    backfill_id: str
    topic: str = ""

    def to(self, topic: str) -> EmitToFolder:
        return EmitToFolder(self.location, self.backfill_id, topic)

    def __call__(self, partition: int, batches: Iterator[Arrow]) -> bytes:
        system, root = _file_system(self.location)
        folder = f"{root}/topic={self.topic}/partition={partition}"
        target = f"{folder}/{self.backfill_id}.parquet"
        if system.get_file_info(target).type is not fs.FileType.NotFound:
            return str(_rows_in(system, target)).encode()
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return b"0"
        system.create_dir(folder, recursive=True)
        # What another backfill has emitted comes before: this one goes on from it.
        others = system.get_file_info(fs.FileSelector(folder))
        offset = sum(_rows_in(system, other.path) for other in others if other.path.endswith(".parquet"))
        draft = f"{folder}/.{self.backfill_id}-{uuid4().hex}.draft"
        try:
            count = self._write(system, draft, offset, _again(first, batches))
            system.move(draft, target)
        except BaseException:
            if system.get_file_info(draft).type is not fs.FileType.NotFound:
                system.delete_file(draft)
            raise
        return str(count).encode()

    def _write(self, system: Arrow, path: str, offset: int, batches: Iterator[Arrow]) -> int:
        count = 0
        with (
            system.open_output_stream(path) as stream,
            pq.ParquetWriter(stream, FILE_SCHEMA) as writer,
        ):
            for batch in batches:
                size = batch.num_rows
                start = offset + count
                columns = [
                    pa.array(range(start, start + size), pa.int64()),
                    *(batch.column(name) for name in ("timestamp", "key", "value", "headers")),
                ]
                writer.write_batch(pa.record_batch(columns, schema=FILE_SCHEMA))
                count += size
        return count


def _file_system(location: str) -> tuple[Arrow, str]:
    """The file system of a path or URL, and the path in it."""
    if "://" in location:
        system, path = fs.FileSystem.from_uri(location)
        return system, path.rstrip("/")
    return fs.LocalFileSystem(), location.rstrip("/")


def _rows_in(system: Arrow, path: str) -> int:
    with system.open_input_file(path) as file:
        return int(pq.read_metadata(file).num_rows)


def _again(first: Arrow, rest: Iterator[Arrow]) -> Iterator[Arrow]:
    yield first
    yield from rest


# To topics


@dataclass(frozen=True, slots=True)
class EmitToTopic:
    """An ``executor.PartitionFunction``: each transaction says how far it comes, so a later attempt goes on there."""

    open_broker: Callable[[], Broker]
    application_id: str
    topic: str
    backfill_id: str

    def __call__(self, partition: int, batches: Iterator[Arrow]) -> bytes:
        with ExitStack() as stack:
            broker = stack.enter_context(closing(self.open_broker()))
            transactional_id = f"{self.application_id}-backfill-emit-{self.topic}-{partition}"
            producer = stack.enter_context(
                closing(broker.transactional_producer("backfill", transactional_id))
            )
            # Read now: nobody else's transaction can add to it any more.
            done = self._done(broker, partition)
            return str(self._write(producer, partition, batches, done)).encode()

    def _write(
        self, producer: TransactionalProducer, partition: int, batches: Iterator[Arrow], done: int
    ) -> int:
        seen = 0
        limit = min(producer.transaction_records_max or TRANSACTION_RECORDS, TRANSACTION_RECORDS)
        pending = 0
        for batch in batches:
            skipped = min(batch.num_rows, max(0, done - seen))
            seen += skipped
            for record in _records(batch.slice(skipped)):
                producer.send(self.topic, partition, *record)
                seen += 1
                pending += 1
                # One record is the mark itself.
                if pending == limit - 1:
                    self._commit(producer, partition, seen)
                    pending = 0
        if pending:
            self._commit(producer, partition, seen)
        return seen

    def _commit(self, producer: TransactionalProducer, partition: int, seen: int) -> None:
        mark = json.dumps({"backfill_id": self.backfill_id, "records": seen}).encode()
        now_ms = SystemClock().now_ms()
        topic = emitted_topic(self.application_id, self.topic)
        producer.send(topic, partition, _MARK_KEY, mark, now_ms, NO_HEADERS)
        producer.commit()

    def _done(self, broker: Broker, partition: int) -> int:
        """How many records of this backfill are in the topic partition."""
        marks = TopicPartition(emitted_topic(self.application_id, self.topic), partition)
        with closing(broker.admin()) as admin:
            start = admin.beginning_offsets([marks])[marks]
            end = admin.end_offsets([marks])[marks]
        last: bytes | None = None
        if start < end:
            with closing(broker.consumer("backfill-emitted", "restore")) as consumer:
                consumer.assign({marks: start})
                while consumer.position(marks) < end:
                    for batch in consumer.poll(_POLL_MS):
                        last = batch.values[-1]
        if last is None:
            return 0
        mark = json.loads(last)
        return int(mark["records"]) if mark["backfill_id"] == self.backfill_id else 0


def _records(
    batch: Arrow,
) -> Iterator[tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]]:
    columns = [batch.column(name).to_pylist() for name in ("key", "value", "timestamp")]
    headers = headers_of(batch.column("headers")) or [NO_HEADERS] * batch.num_rows
    return zip(*columns, headers, strict=True)
