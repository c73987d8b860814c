"""Records of several partitions, written as files in every format."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.exchange.rows import RECORD_SCHEMA, headers_column, headers_of
from pystreams.backfill.sources import CsvSource, JsonSource, MemorySource, ParquetSource, Source
from pystreams.backfill.sources.ranges import InputRange
from pystreams.ids import TopicPartition
from pystreams.record import NO_HEADERS, Headers, RecordBatch

#: Offset, timestamp, key, value, headers.
Row = tuple[int, int, bytes | None, bytes | None, Headers]
Rows = dict[TopicPartition, list[Row]]


def in_memory(rows: Rows) -> MemorySource:
    counts: dict[str, int] = {}
    batches = {}
    for partition, of in rows.items():
        counts[partition.topic] = max(counts.get(partition.topic, 0), partition.partition + 1)
        if of:
            offsets, times, keys, values, headers = map(list, zip(*of, strict=True))
            batch = RecordBatch(*partition, keys, values, times, offsets, headers, offsets[-1] + 1)
            batches[partition] = [batch]
    return MemorySource(counts, batches)


def table(rows: Rows) -> pa.Table:
    flat = [(*partition, *row) for partition, of in rows.items() for row in of]
    topics, numbers, offsets, times, keys, values, headers = (
        map(list, zip(*flat, strict=True)) if flat else ([] for _ in range(7))
    )
    headers = list(headers)
    columns = [topics, numbers, offsets, times, keys, values]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, list(RECORD_SCHEMA)[:6], strict=True)]
    return pa.Table.from_arrays([*arrays, headers_column(headers, len(headers))], schema=RECORD_SCHEMA)


def as_parquet(rows: Rows, folder: Path) -> Source:
    """Two partitions and more in one file, in small row groups."""
    folder.mkdir()
    pq.write_table(table(rows), folder / "all.parquet", row_group_size=3)
    return ParquetSource(str(folder))


def as_hive_folders(rows: Rows, folder: Path) -> Source:
    """As Spark writes ``partitionBy("topic", "partition")``, with moments in place of milliseconds."""
    for partition, of in rows.items():
        of_partition = table({partition: of}).drop_columns(["topic", "partition"])
        place = of_partition.schema.get_field_index("timestamp")
        moments = of_partition.column("timestamp").cast(pa.timestamp("ms")).cast(pa.timestamp("us"))
        of_partition = of_partition.set_column(place, "timestamp", moments)
        inside = folder / f"topic={partition.topic}" / f"partition={partition.partition}"
        inside.mkdir(parents=True)
        half = len(of) // 2
        # Names that sort against the offsets.
        pq.write_table(of_partition.slice(half), inside / "a.parquet", row_group_size=2)
        pq.write_table(of_partition.slice(0, half), inside / "b.parquet")
    return ParquetSource(str(folder))


def as_odd_parquet(rows: Rows, folder: Path) -> Source:
    """Other types that say the same, as some tool may have written it."""
    folder.mkdir()
    odd = table(rows)
    for name, type in (
        ("topic", pa.dictionary(pa.int8(), pa.string())),
        ("partition", pa.string()),
        ("offset", pa.int32()),
        ("timestamp", pa.string()),
        ("value", pa.large_binary()),
    ):
        column = odd.column(name)
        column = column.dictionary_encode() if name == "topic" else column.cast(type)
        odd = odd.set_column(odd.schema.get_field_index(name), name, column)
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = [
        None if one is None else [{"key": h["name"], "value": h["value"]} for h in one]
        for one in odd.column("headers").to_pylist()
    ]
    odd = odd.set_column(odd.schema.get_field_index("headers"), "headers", pa.array(headers, pairs))
    pq.write_table(odd, folder / "all.parquet", row_group_size=5)
    return ParquetSource(str(folder))


def as_rewritten_parquet(rows: Rows, folder: Path) -> Source:
    """Headers with the types that another program has made of those of pystreams."""
    folder.mkdir()
    rewritten = table(rows)
    for name, type in (
        ("headers", pa.large_list(pa.struct([("name", pa.large_string()), ("value", pa.large_binary())]))),
        ("key", pa.large_binary()),
    ):
        place = rewritten.schema.get_field_index(name)
        rewritten = rewritten.set_column(place, name, pa.array(rewritten.column(name).to_pylist(), type))
    pq.write_table(rewritten, folder / "all.parquet", row_group_size=4)
    return ParquetSource(str(folder))


def as_csv(rows: Rows, folder: Path) -> Source:
    """Keys and values in base64, because bytes are not text."""
    folder.mkdir()
    with (folder / "all.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["note", "value", "key", "timestamp", "offset", "partition", "topic", "headers"])
        for partition, of in rows.items():
            for offset, time, key, value, headers in of:
                place = [time, offset, partition.partition, partition.topic]
                writer.writerow(["x", _base64(value), _base64(key), *place, _headers(headers)])
    # The writer leaves out what is between two commas for null and for the empty text alike.
    text = (folder / "all.csv").read_text().replace("EMPTY", '""')
    (folder / "all.csv").write_text(text)
    return CsvSource(str(folder), key_encoding="base64", value_encoding="base64")


def as_json(rows: Rows, folder: Path) -> Source:
    folder.mkdir()
    with (folder / "all.jsonl").open("w") as file:
        for partition, of in rows.items():
            for offset, time, key, value, headers in of:
                line = {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "offset": offset,
                    "timestamp": time,
                    "key": None if key is None else base64.b64encode(key).decode(),
                    "value": None if value is None else base64.b64encode(value).decode(),
                    "headers": [[n, None if v is None else v.decode()] for n, v in headers],
                }
                file.write(json.dumps(line) + "\n")
    return JsonSource(str(folder), key_encoding="base64", value_encoding="base64")


FORMATS: dict[str, Callable[[Rows, Path], Source]] = {
    "parquet": as_parquet,
    "hive": as_hive_folders,
    "odd parquet": as_odd_parquet,
    "rewritten parquet": as_rewritten_parquet,
    "csv": as_csv,
    "json": as_json,
}


def read(source: Source, partition: TopicPartition, start: int, end: int) -> list[Row]:
    found: list[Row] = []
    for batch in source.read(InputRange(partition, start, end)):
        assert batch.schema == RECORD_SCHEMA
        assert set(batch.column("topic").to_pylist()) <= {partition.topic}
        assert set(batch.column("partition").to_pylist()) <= {partition.partition}
        names = ("offset", "timestamp", "key", "value")
        headers = headers_of(batch.column("headers")) or [NO_HEADERS] * batch.num_rows
        found += zip(*(batch.column(name).to_pylist() for name in names), headers, strict=True)
    return found


def _base64(data: bytes | None) -> str:
    if data is None:
        return ""
    return base64.b64encode(data).decode() or "EMPTY"


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> str:
    if not headers:
        return ""
    return json.dumps([[name, None if value is None else value.decode()] for name, value in headers])
