"""Archives in CSV, with a line of column names."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa
from pyarrow import csv as arrow_csv

from pystreams.backfill.records import Arrow, headers_column
from pystreams.backfill.sources.columns import encoded, headers_of_text
from pystreams.backfill.sources.text_files import TextSource
from pystreams.errors import ConfigError

_TYPES: Final = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.string(),
    "key": pa.string(),
    "value": pa.string(),
    "headers": pa.string(),
}
#: A record must fit into a block.
_BLOCK_BYTES: Final = 16 << 20


@dataclass(frozen=True)
class CsvSource(TextSource):
    """An archive in CSV. See ``FileSource`` and ``TextSource``.

    Nothing between two commas is null, ``""`` is the empty text. ``headers`` are JSON: ``[["name", "text"], ...]``.
    Columns of other names do not matter.
    """

    format_name: ClassVar[str] = "CSV"
    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".csv.gz", ".csv.zst", ".csv.bz2")

    def batches(self, file: str, *, times_only: bool) -> Iterator[Arrow]:
        where = f"{self.description}, {file}"
        with self.open_text(file) as opened:
            try:
                names = _names(opened)
                wanted = [name for name in names if name in _TYPES]
                if times_only:
                    wanted = [name for name in wanted if name not in ("key", "value", "headers")]
                reader = arrow_csv.open_csv(
                    opened,
                    arrow_csv.ReadOptions(block_size=_BLOCK_BYTES, column_names=names, use_threads=False),
                    arrow_csv.ParseOptions(newlines_in_values=True),
                    arrow_csv.ConvertOptions(
                        column_types=_TYPES,
                        include_columns=wanted,
                        null_values=[""],
                        strings_can_be_null=True,
                        quoted_strings_can_be_null=False,
                    ),
                )
                for batch in reader:
                    yield self.records(self._decoded(batch, where), file)
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                raise ConfigError(
                    "a file of the archive is no CSV with these columns", where=where, why=str(error)
                ) from None

    def _decoded(self, batch: Arrow, where: str) -> Arrow:
        columns = {name: batch.column(name) for name in batch.schema.names}
        for name, encoding in (("key", self.key_encoding), ("value", self.value_encoding)):
            if name in columns and encoding not in ("text", "json"):
                columns[name] = encoded(columns[name].to_pylist(), encoding, f"{where}, column {name}")
        if "headers" in columns:
            texts = columns["headers"].to_pylist()
            columns["headers"] = headers_column([headers_of_text(text, where) for text in texts], len(texts))
        return pa.record_batch(columns) if columns else batch


def _names(opened: Arrow) -> list[str]:
    """The names in the first line, which is taken from the stream."""
    line = bytearray()
    while (byte := opened.read(1)) not in (b"\n", b""):
        line += byte
    return next(csv.reader([line.decode("utf-8-sig").rstrip("\r")]), [])
