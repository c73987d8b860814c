"""Decodes the records of an input, for the task that processes them and for stores that are restored from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pystreams.config import StreamsConfig
from pystreams.engine.input.decoding import BatchDecoder, Rows
from pystreams.engine.node_defaults import extractor_of, serdes_of
from pystreams.handlers import Response
from pystreams.record import RecordBatch
from pystreams.timestamps import WallClockTimestamp
from pystreams.topology.nodes import SourceNode


def input_decoder(
    source: SourceNode, topic: str, config: StreamsConfig, now_ms: Callable[[], int], partition_time: int = -1
) -> BatchDecoder:
    """The decoder of a topic's records, with the serdes and extractor of their source."""
    key_serde, value_serde = serdes_of(source, config)
    return BatchDecoder(
        key_serde.deserializer(topic),
        value_serde.deserializer(topic),
        extractor_of(source, config),
        now_ms,
        partition_time,
        by_header=(
            key_serde.header_deserializer(topic, "key"),
            value_serde.header_deserializer(topic, "value"),
        ),
    )


class InputForStore:
    """Reads an input partition that a store is restored from, as the task has processed it: without refused records,
    and with the extracted timestamps."""

    def __init__(
        self, source: SourceNode, topic: str, config: StreamsConfig, now_ms: Callable[[], int]
    ) -> None:
        extractor = extractor_of(source, config)
        #: Whether to use the records' own timestamps, because the time at which they were processed is not known.
        self._own_times = isinstance(extractor, WallClockTimestamp)
        self._decoder = input_decoder(source, topic, config, now_ms)
        #: Kinds of refusals that are ignored here: they would have stopped the task, so the task cannot have had them.
        #: They occur only here, because the partition's time before these records is not known. (A failing extractor
        #: stops the task unless the processing handler skips the record.)
        goes_on = config.processing_exception_handler in (Response.CONTINUE.value, Response.DEAD_LETTER.value)
        self._processed_all_the_same = {"invalid_time"} if goes_on else {"invalid_time", "extractor_failed"}
        key_serde, value_serde = serdes_of(source, config)
        self._write_key, self._write_value = key_serde.key_serializer(topic), value_serde.serializer(topic)

    def processed(self, batch: RecordBatch) -> RecordBatch:
        """The batch as the task has processed it."""
        rows = self._decoder.decode(batch)
        if rows.headers != batch.headers:
            batch = self._written_anew(batch, rows)
        if not rows.refused and (self._own_times or rows.timestamps is batch.timestamps):
            return batch
        kept = [
            place
            for place in range(len(batch))
            if place not in rows.refused or rows.refused[place].kind in self._processed_all_the_same
        ]
        times = batch.timestamps if self._own_times else rows.timestamps
        return RecordBatch(
            batch.topic,
            batch.partition,
            [batch.keys[place] for place in kept],
            [batch.values[place] for place in kept],
            [batch.timestamps[place] if place in rows.refused else times[place] for place in kept],
            [batch.offsets[place] for place in kept],
            None if batch.headers is None else [batch.headers[place] for place in kept],
            batch.next_offset,
        )

    def _written_anew(self, batch: RecordBatch, rows: Rows) -> RecordBatch:
        """The batch with keys and values serialized as the task has stored them, and without the headers that have
        determined how to deserialize the original bytes."""
        keys, values = list(batch.keys), list(batch.values)
        for place in range(len(batch)):
            if place not in rows.refused and rows.headers is not None:
                key, value = rows.keys[place], rows.values[place]
                keys[place] = None if key is None else self._write_key(key)
                values[place] = None if value is None else self._write_value(value)
        return replace(batch, keys=keys, values=values, headers=rows.headers)
