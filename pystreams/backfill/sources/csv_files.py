"""Archives in CSV, with a line of column names."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import pyarrow as pa
from pyarrow import csv as arrow_csv

from pystreams.backfill.exchange.rows import Arrow, headers_column
from pystreams.backfill.sources.file_columns import encoded, headers_of_text
from pystreams.backfill.sources.source import BATCH_ROWS
from pystreams.backfill.sources.text_files import TextSource, packed
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

    An empty field is null, ``""`` is the empty text; a quote within quotes is written twice. ``headers`` are JSON:
    ``[["name", "text"], ...]``. Columns with other names are ignored.
    """

    format_name: ClassVar[str] = "CSV"
    suffixes: ClassVar[tuple[str, ...]] = packed(".csv")

    def batches(self, file: str, *, times_only: bool) -> Iterator[Arrow]:
        where = self.where(file)
        wanted = self._columns(file)
        if not wanted:
            return
        if times_only:
            wanted = [name for name in wanted if name not in ("key", "value", "headers")]
        with self.open_text(file) as opened:
            try:
                reader = arrow_csv.open_csv(
                    opened,
                    arrow_csv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
                    arrow_csv.ParseOptions(newlines_in_values=True),
                    arrow_csv.ConvertOptions(
                        column_types=_TYPES,
                        include_columns=wanted,
                        null_values=[""],
                        strings_can_be_null=True,
                        quoted_strings_can_be_null=False,
                    ),
                )
                for block in reader:
                    for start in range(0, block.num_rows, BATCH_ROWS):
                        yield self.records(self._decoded(block.slice(start, BATCH_ROWS), where), file)
            except pa.ArrowInvalid as error:
                raise ConfigError(
                    "a file of the archive is not CSV with these columns", where=where, why=str(error)
                ) from None

    def _columns(self, file: str) -> list[str]:
        """The columns of a file that belong to records; none for a file without a record."""
        try:
            with self.open_text(file) as opened:
                names, ended = _names(opened)
        except UnicodeDecodeError as error:
            raise ConfigError(
                "a file of the archive is not CSV", where=self.where(file), why=str(error)
            ) from None
        columns = [name for name in names if name in _TYPES]
        if len(set(columns)) < len(columns):
            raise ConfigError(
                "a file of the archive has a column twice", where=self.where(file), why=", ".join(names)
            )
        if names and not columns:
            raise ConfigError(
                "a file of the archive does not have any column of a record",
                where=self.where(file),
                why=f"its first line: {', '.join(names)}",
                hint=f"the first line must have names of columns: {', '.join(_TYPES)}",
            )
        return [] if ended else columns

    def _decoded(self, batch: Arrow, where: str) -> Arrow:
        columns = {name: batch.column(name) for name in batch.schema.names}
        for name, encoding in (("key", self.key_encoding), ("value", self.value_encoding)):
            if name in columns and encoding not in ("text", "json"):
                columns[name] = encoded(columns[name].to_pylist(), encoding, f"{where}, column {name}")
        if "headers" in columns:
            texts = columns["headers"].to_pylist()
            columns["headers"] = headers_column([headers_of_text(text, where) for text in texts], len(texts))
        return pa.record_batch(columns)


def _names(opened: Arrow) -> tuple[list[str], bool]:
    """The names in the first line that is not empty, and whether the file ends with it."""
    line = bytearray()
    while byte := opened.read(1):
        if byte == b"\n" and line.strip():
            break
        line += byte
    return next(csv.reader([line.decode("utf-8-sig").strip()]), []), not byte
