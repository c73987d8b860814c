"""The columns of records, for a step that folds in columns and that gets them as they are in their topic.

No object is made for a record, except by serdes that are not those of whole numbers. What is unusual in a chunk (nulls,
headers, bytes that cannot be read, records that are too late) is left to the way of single records, which handles it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from pystreams.backfill.application import LoadedApplication
from pystreams.backfill.exchange.rows import Arrow, pc
from pystreams.backfill.plan.dependencies import runs_processor
from pystreams.backfill.plan.slices import Slice
from pystreams.dsl.operators.final_columns import Batch, ColumnFold
from pystreams.dsl.operators.state_columns import Chosen
from pystreams.engine.node_serdes import serdes_of
from pystreams.engine.stream_task import StreamTask
from pystreams.errors import FoldingError
from pystreams.ids import TopicPartition
from pystreams.serde.base import AnySerde
from pystreams.serde.primitives import BytesSerde, IntSerde, StrSerde
from pystreams.timestamps import RecordTimestamp, resolve_extractor
from pystreams.topology.nodes import Node, ProcessorNode, SourceNode

#: So many rows are processed at once.
COLUMN_ROWS: Final = 16_384

_INT64_BYTES: Final = 8
#: Arrow's offsets into the content of a binary column.
_OFFSET_BYTES: Final = 4


class ColumnInput:
    """The input of a task whose only source has one step behind it, which folds in columns."""

    def __init__(
        self,
        stream: StreamTask,
        partition: TopicPartition,
        step: ColumnFold,
        serdes: tuple[AnySerde, AnySerde],
    ) -> None:
        key_serde, value_serde = serdes
        self._stream = stream
        self._partition = partition
        self._step = step
        self._decode_key = key_serde.deserializer(partition.topic)
        self._decode_value = value_serde.deserializer(partition.topic)
        self._is_int64 = isinstance(value_serde, IntSerde) and value_serde.size == _INT64_BYTES

    def process(self, chunk: Arrow) -> bool:
        """Process the records of a chunk. Returns False, and does nothing, if something in it is unusual."""
        keys, values, times = (chunk.column(name) for name in ("key", "value", "timestamp"))
        if keys.null_count or values.null_count or chunk.column("headers").null_count < chunk.num_rows:
            return False
        timestamps = times.to_numpy()
        # Before anything is decoded, because the way of single records would decode it again.
        if timestamps.min() < 0 or not self._step.in_time(timestamps):
            return False
        encoded = keys.dictionary_encode()
        offsets = chunk.column("sequence").to_numpy()
        try:
            # Serdes and users' functions raise what they like. The way of single records finds the one that is bad.
            addresses = [
                self._step.address_of(self._decode_key(key)) for key in encoded.dictionary.to_pylist()
            ]
            chosen = self._chosen(values)
        except Exception:  # noqa: BLE001
            return False
        batch = Batch(encoded.indices.to_numpy(), addresses, timestamps, offsets, chosen, *self._partition)
        try:
            self._step.add_batch(batch)
        except FoldingError as error:
            place = f"{self._partition} offsets {int(offsets[0])} to {int(offsets[-1])}"
            error.extend(where=f"task {self._stream.task_id}, {place}")
            raise
        self._stream.passed(self._partition, chunk.num_rows, int(offsets[-1]) + 1, int(timestamps.max()))
        return True

    def _chosen(self, values: Arrow) -> list[Chosen]:
        """What each column of the step adds."""
        numbers = _int64(values) if self._is_int64 else None
        read = None
        chosen: list[Chosen] = []
        for column in self._step.columns:
            if column.choose is None:
                chosen.append((None, None))
            elif column.adds_itself and numbers is not None:
                chosen.append(column.taken(numbers))
            else:
                read = read or self._read(values, numbers)
                chosen.append(column.taken(read if column.adds_itself else [*map(column.choose, read)]))
        return chosen

    def _read(self, values: Arrow, numbers: Any) -> list[Any]:
        if numbers is not None:
            return list(numbers.tolist())
        return [self._decode_value(value) for value in values.to_pylist()]


def column_input(
    loaded: LoadedApplication,
    slice: Slice,
    nodes: Sequence[Node],
    folded: Collection[str],
    stream: StreamTask,
) -> ColumnInput | None:
    """The input of a started task in columns; None if its records have to come one by one."""
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
    behind = [node.name for node in nodes if not isinstance(node, SourceNode) and source.name in node.parents]
    if len(behind) != 1 or behind[0] not in folded:
        return None
    extractor = resolve_extractor(source.timestamp_extractor or loaded.config.default_timestamp_extractor)
    serdes = serdes_of(source, loaded.config)
    # Of other serdes, different bytes may be equal keys.
    if not isinstance(extractor, RecordTimestamp) or not isinstance(
        serdes[0], StrSerde | BytesSerde | IntSerde
    ):
        return None
    step = stream.folded(behind[0])
    return ColumnInput(stream, partition, step, serdes) if isinstance(step, ColumnFold) else None


def _int64(values: Arrow) -> Any:
    """A column of ``IntSerde``'s bytes as numbers. Raises ``ValueError`` if one of them is not that long."""
    lengths = pc.binary_length(values)
    if pc.min(lengths).as_py() != _INT64_BYTES or pc.max(lengths).as_py() != _INT64_BYTES:
        raise ValueError("a value does not have the bytes of a whole number")
    _, offsets, content = values.buffers()
    first = np.frombuffer(offsets, np.int32, 1, values.offset * _OFFSET_BYTES)[0]
    return np.frombuffer(content, ">i8", len(values), first).astype(np.int64)
