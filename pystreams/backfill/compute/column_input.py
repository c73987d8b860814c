"""The input of a step that folds in columns, taken directly from the columns of its topic.

No object is made for a record, except by serdes other than those of whole numbers, and for steps of column expressions
in between. Chunks with nulls, or with bytes that cannot be read, are processed record by record.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.compute.column_steps import ColumnStep, Passed, column_steps, passed
from pystreams.backfill.compute.shares import Share
from pystreams.backfill.exchange.rows import Arrow, headers_of, pc, place_of
from pystreams.backfill.plan.dependencies import runs_processor
from pystreams.backfill.plan.slices import Slice
from pystreams.dsl.operators.final_columns import Batch, ColumnFold
from pystreams.dsl.operators.state_columns import Chosen
from pystreams.engine.node_defaults import extractor_of, serdes_of
from pystreams.engine.stream_task import StreamTask
from pystreams.errors import FoldingError
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers, RecordContext
from pystreams.serde.base import AnySerde
from pystreams.serde.primitives import BytesSerde, IntSerde, StrSerde
from pystreams.timestamps import RecordTimestamp
from pystreams.topology.nodes import Node, ProcessorNode

#: The number of rows that are processed at once.
COLUMN_ROWS: Final = 16_384

_INT64_BYTES: Final = 8
#: Arrow's offsets into the content of a binary column.
_OFFSET_BYTES: Final = 4


class ColumnInput:
    """The input of a task with one source and one step that folds in columns. Between the two are at most steps of
    column expressions."""

    def __init__(
        self,
        stream: StreamTask,
        partition: TopicPartition,
        before: Sequence[ColumnStep],
        step: ColumnFold,
        serdes: tuple[AnySerde, AnySerde],
        *,
        moves_late: bool,
        keys: Share | None,
    ) -> None:
        """``before`` are the steps before ``step``. ``moves_late``: late records go to the dead-letter topic, which
        needs their bytes. Of the records of other shares, only the time is seen."""
        key_serde, value_serde = serdes
        self._stream = stream
        self._partition = partition
        self._before = before
        self._step = step
        self._decode_key = key_serde.deserializer(partition.topic)
        self._decode_value = value_serde.deserializer(partition.topic)
        self._is_int64 = isinstance(value_serde, IntSerde) and value_serde.size == _INT64_BYTES
        self._moves_late = moves_late
        self._keys = keys

    def process(self, chunk: Arrow) -> bool:
        """Process the records of a chunk. Returns False, and does nothing, if something in it is unusual."""
        if chunk.column("key").null_count or chunk.column("value").null_count:
            return False
        if pc.min(chunk.column("timestamp")).as_py() < 0:
            return False
        try:
            # Serdes and expressions may raise any error. Processing record by record then finds the bad record.
            coming = self._coming(chunk)
        except Exception:  # noqa: BLE001
            return False
        if coming is None or (coming.rows.num_rows and not self._take(coming)):
            return False
        last, latest = chunk.column("sequence")[-1].as_py(), pc.max(chunk.column("timestamp")).as_py()
        self._stream.passed(self._partition, chunk.num_rows, last + 1, latest)
        return True

    def _coming(self, chunk: Arrow) -> Passed | None:
        """The records of a chunk that come to the step; None if one is unusual. Raises as serdes and expressions do."""
        if not self._before:
            return Passed(chunk, None)
        for key in chunk.column("key").unique().to_pylist():
            self._decode_key(key)
        return passed(self._before, chunk, self._read(chunk.column("value")))

    def _take(self, coming: Passed) -> bool:
        """Have the step process records. Returns False, and does nothing, if one is unusual."""
        rows = coming.rows
        timestamps = rows.column("timestamp").to_numpy()
        nows = self._step.nows(timestamps)
        late = self._step.late(timestamps, nows)
        # Checked before anything is decoded, because processing record by record would decode it again.
        if self._moves_late and len(late):
            return False
        mine = np.ones(rows.num_rows, bool) if self._keys is None else self._keys.has(rows.column("key"))
        late = late[mine[late]]
        mine[late] = False
        try:
            # As above; the user's functions, too.
            drops = self._late_records(coming, late, nows) if len(late) else []
            batch = self._batch(*_only(mine, coming, nows)) if mine.any() else None
        except Exception:  # noqa: BLE001
            return False
        for drop in drops:
            self._step.drop_late(*drop)
        self._add(batch, rows, int(nows[-1]))
        return True

    def _late_records(
        self, coming: Passed, late: Any, nows: Any
    ) -> list[tuple[RecordContext, Any, Any, int]]:
        """The records with the numbers ``late``, as ``ColumnFold.drop_late`` takes them. ``nows`` are the stream times
        at all that are coming."""
        rows, values = _at(coming, late)
        columns = [rows.column(name).to_pylist() for name in ("sequence", "timestamp", "key")]
        read = self._read(rows.column("value")) if values is None else values
        headers = _headers_at(rows.column("headers"), np.arange(len(late)))
        topic, partition = self._partition
        return [
            ((topic, partition, offset, timestamp, of_record), self._decode_key(key), value, now)
            for offset, timestamp, key, value, of_record, now in zip(
                *columns, read, headers, nows[late].tolist(), strict=True
            )
        ]

    def _batch(self, coming: Passed, nows: Any) -> Batch:
        rows = coming.rows
        encoded, headers = rows.column("key").dictionary_encode(), rows.column("headers")
        return Batch(
            encoded.indices.to_numpy(),
            [self._step.address_of(self._decode_key(key)) for key in encoded.dictionary.to_pylist()],
            rows.column("timestamp").to_numpy(),
            nows,
            rows.column("sequence").to_numpy(),
            self._chosen(coming),
            None if headers.null_count == rows.num_rows else partial(_headers_at, headers),
            *self._partition,
        )

    def _add(self, batch: Batch | None, chunk: Arrow, now: int) -> None:
        try:
            if batch is not None:
                self._step.add_batch(batch)
            self._step.pass_time(now)
        except FoldingError as error:
            error.extend(where=f"task {self._stream.task_id}, {place_of(chunk)}")
            raise

    def _chosen(self, coming: Passed) -> list[Chosen]:
        """The values that each column of the step adds."""
        read, numbers = coming.values, None
        if read is None and self._is_int64:
            numbers = _int64(coming.rows.column("value"))
        chosen: list[Chosen] = []
        for column in self._step.columns:
            if column.choose is None:
                chosen.append((None, None))
            elif column.adds_itself and numbers is not None:
                chosen.append(column.taken(numbers))
            else:
                if read is None:
                    read = self._read(coming.rows.column("value"))
                chosen.append(column.taken(read if column.adds_itself else [*map(column.choose, read)]))
        return chosen

    def _read(self, values: Arrow) -> list[Any]:
        if self._is_int64:
            return list(_int64(values).tolist())
        return [self._decode_value(value) for value in values.to_pylist()]


def column_input(
    loaded: LoadedApplication,
    slice: Slice,
    nodes: Sequence[Node],
    folded: Collection[str],
    stream: StreamTask,
    keys: Share | None = None,
) -> ColumnInput | None:
    """The input of a started task, or of a share of it, in columns; None if its records have to come one by one."""
    partition, *others = stream.partitions
    source = loaded.built.subtopologies[slice.subtopology].source_for(partition.topic)
    steps = [node for node in nodes if isinstance(node, ProcessorNode)]
    if (
        others
        or source is None
        or any(input.internal for input in slice.inputs)
        or any(map(runs_processor, steps))
    ):
        return None
    way = column_steps(source, nodes)
    if way is None or way[1] not in folded:
        return None
    before, behind = way
    extractor = extractor_of(source, loaded.config)
    serdes = serdes_of(source, loaded.config)
    # Of other serdes, different bytes may be equal keys.
    if not isinstance(extractor, RecordTimestamp) or not isinstance(
        serdes[0], StrSerde | BytesSerde | IntSerde
    ):
        return None
    step = stream.folded(behind)
    if not isinstance(step, ColumnFold):
        return None
    return ColumnInput(
        stream,
        partition,
        before,
        step,
        serdes,
        moves_late=loaded.config.dead_letter_dropped_records,
        keys=keys,
    )


def _only(wanted: Any, coming: Passed, nows: Any) -> tuple[Passed, Any]:
    """The records that are wanted, and the stream times at them."""
    return (coming, nows) if wanted.all() else (_at(coming, np.flatnonzero(wanted)), nows[wanted])


def _at(coming: Passed, numbers: Any) -> Passed:
    """The records with these numbers."""
    rows, values = coming
    return Passed(
        rows.take(pa.array(numbers)),
        None if values is None else [values[number] for number in numbers.tolist()],
    )


def _headers_at(column: Arrow, numbers: Any) -> list[Headers]:
    return headers_of(column.take(pa.array(numbers))) or [NO_HEADERS] * len(numbers)


def _int64(values: Arrow) -> Any:
    """A column of ``IntSerde``'s bytes as numbers. Raises ``ValueError`` if one of them is not that long."""
    lengths = pc.binary_length(values)
    if pc.min(lengths).as_py() != _INT64_BYTES or pc.max(lengths).as_py() != _INT64_BYTES:
        raise ValueError("a value does not have the bytes of a whole number")
    _, offsets, content = values.buffers()
    first = np.frombuffer(offsets, np.int32, 1, values.offset * _OFFSET_BYTES)[0]
    return np.frombuffer(content, ">i8", len(values), first).astype(np.int64)
