"""Tables that are read without Spark: files in Parquet, and rows in memory. Their columns have the types that Spark
would give them, so that both make the same records.

A table is read in pieces, which are picklable: each worker reads its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from pystreams.backfill.exchange.rows import Arrow, repeated
from pystreams.backfill.locations import shown
from pystreams.backfill.sources.file_source import LOOKING_THREADS
from pystreams.backfill.sources.folder import Folder
from pystreams.backfill.sources.frames.column_types import folder_columns, spark_schema
from pystreams.backfill.sources.frames.source import DataFrame, SparkTable
from pystreams.backfill.sources.parquet_files import batch_rows
from pystreams.backfill.sources.source import BATCH_ROWS
from pystreams.errors import ConfigError, StateError

#: A piece has about this much, before it was packed.
_PIECE_BYTES: Final = 64 << 20

#: The column in which pandas keeps an index without a name.
_PANDAS_INDEX: Final = "__index_level_"


class TablePiece(Protocol):
    """Some rows of a table."""

    def batches(self, columns: Sequence[str]) -> Iterator[Arrow]:
        """Its rows with these columns, in the table's types. Raises ``StateError`` if they cannot be read."""
        ...


class ArrowTable(Protocol):
    """A table whose rows come as Arrow columns."""

    @property
    def name(self) -> str:
        """For people."""
        ...

    @property
    def schema(self) -> Arrow: ...

    def pieces(self) -> Sequence[TablePiece]: ...


def open_table(frame: DataFrame | SparkTable) -> ArrowTable:
    """Raises ``ConfigError`` for a table that cannot be opened; it is one that does not need Spark."""
    return ParquetTable.at(frame) if isinstance(frame, SparkTable) else in_memory(frame)


@dataclass(frozen=True, slots=True)
class MemoryPiece:
    """Rows in memory."""

    table: Arrow

    def batches(self, columns: Sequence[str]) -> Iterator[Arrow]:
        yield from self.table.select(list(columns)).to_batches(BATCH_ROWS)


@dataclass(frozen=True)
class MemoryTable:
    """A DataFrame of pandas or Polars, or an Arrow table."""

    table: Arrow = field(repr=False)

    @property
    def name(self) -> str:
        return "a DataFrame"

    @property
    def schema(self) -> Arrow:
        return self.table.schema

    def pieces(self) -> list[MemoryPiece]:
        rows = max(1, self.table.num_rows * _PIECE_BYTES // max(self.table.nbytes, 1))
        return [MemoryPiece(self.table.slice(start, rows)) for start in range(0, self.table.num_rows, rows)]


def in_memory(frame: DataFrame) -> MemoryTable:
    """Of whatever gives its rows as Arrow columns."""
    table = pa.table(frame)
    table = table.drop_columns([name for name in table.schema.names if name.startswith(_PANDAS_INDEX)])
    return MemoryTable(table.cast(spark_schema(table.schema), safe=False))


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a table. ``groups`` are row groups that are read together."""

    name: str
    schema: Arrow
    groups: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class ParquetPiece:
    """Row groups of a file. ``given`` are the columns whose values are in the names of its folders."""

    folder: Folder
    file: str
    groups: tuple[int, ...]
    schema: Arrow
    given: dict[str, Any]
    where: str

    def batches(self, columns: Sequence[str]) -> Iterator[Arrow]:
        with _opened(self.folder, self.file, self.where) as parquet:
            there = [
                name for name in columns if name in parquet.schema_arrow.names and name not in self.given
            ]
            for batch in parquet.iter_batches(
                batch_rows(parquet.metadata), row_groups=self.groups, columns=there
            ):
                yield self._completed(batch, columns)

    def _completed(self, batch: Arrow, columns: Sequence[str]) -> Arrow:
        fields = [self.schema.field(name) for name in columns]
        return pa.record_batch(
            [self._column(batch, field.name, field.type) for field in fields], schema=pa.schema(fields)
        )

    def _column(self, batch: Arrow, name: str, type: Arrow) -> Arrow:
        if name in self.given:
            return repeated(self.given[name], type, batch.num_rows)
        if name not in batch.schema.names:
            return pa.nulls(batch.num_rows, type)
        column = batch.column(name)
        return column if column.type == type else column.cast(type, safe=False)


@dataclass(frozen=True)
class ParquetTable:
    """A folder of Parquet files, or one file. Files may lack columns of others, whose values are null then."""

    folder: Folder
    name: str
    _files: Sequence[_File] = field(repr=False)

    @classmethod
    def at(cls, table: SparkTable) -> ParquetTable:
        """Raises ``ConfigError`` for a place without Parquet files."""
        folder, name = Folder(table.place), table.description
        if folder.exists("_delta_log"):
            raise ConfigError(
                f"{name} is a table of Delta Lake",
                why="some of its files may have been deleted from the table, and only its log says which",
                hint=f"read it with Spark: delta:{shown(table.place)}, in Python SparkTable('delta', ...)",
            )
        files = folder.files([""])
        if not files:
            raise ConfigError(f"{name} has no file", hint="check the path")
        with ThreadPoolExecutor(LOOKING_THREADS) as pool:
            return cls(folder, name, list(pool.map(lambda file: _look(folder, file, name), files)))

    @cached_property
    def _given(self) -> tuple[Arrow, list[dict[str, Any]]]:
        return folder_columns([file.name for file in self._files])

    @cached_property
    def schema(self) -> Arrow:
        """Raises ``ConfigError`` if files have different types of a column."""
        first, given = self._files[0], self._given[0]
        found = first.schema
        for file in self._files[1:]:
            try:
                found = pa.unify_schemas([found, file.schema], promote_options="permissive")
            except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise ConfigError(
                    "the files of a table have columns of different types",
                    where=_place(self.name, file.name),
                    why=str(error).splitlines()[0],
                    hint="write them alike, or name a folder with those of one type",
                ) from None
        fields = [field for field in found if field.name not in given.names]
        return pa.schema([*fields, *given])

    def pieces(self) -> list[ParquetPiece]:
        schema = self.schema
        return [
            ParquetPiece(self.folder, file.name, groups, schema, given, self.name)
            for file, given in zip(self._files, self._given[1], strict=True)
            for groups in file.groups
        ]


def _look(folder: Folder, file: str, where: str) -> _File:
    with _opened(folder, file, where) as parquet:
        footer = parquet.metadata
        int96 = [
            footer.schema.column(number).physical_type == "INT96" for number in range(footer.num_columns)
        ]
        groups: list[list[int]] = []
        size = _PIECE_BYTES
        for number in range(footer.num_row_groups):
            if size >= _PIECE_BYTES:
                groups.append([])
                size = 0
            groups[-1].append(number)
            size += footer.row_group(number).total_byte_size
        return _File(file, spark_schema(parquet.schema_arrow, int96), tuple(map(tuple, groups)))


@contextmanager
def _opened(folder: Folder, file: str, where: str) -> Iterator[Any]:
    """A file of a table. Raises ``StateError`` if it cannot be read, ``ConfigError`` for another format."""
    try:
        with folder.open_file(file) as opened:
            # Without pre-buffering, which would keep everything that was read in memory.
            yield pq.ParquetFile(opened, pre_buffer=False, coerce_int96_timestamp_unit="us")
    except pa.ArrowInvalid as error:
        raise ConfigError(
            "a file of the table is not a Parquet file, or is damaged",
            where=_place(where, file),
            why=str(error).splitlines()[0],
            hint="leave it out: a backfill reads all files of the folder whose names do not begin with _ or .",
        ) from None
    except OSError as error:
        raise StateError(
            "a file of the table cannot be read",
            where=_place(where, file),
            why=shown((str(error).splitlines() or [""])[0]),
            hint="check disk, network and permissions, and restore the file if it is gone or damaged",
        ) from error


def _place(where: str, file: str) -> str:
    """A file, for people; the table may be that file."""
    return f"{where}, {file}" if file else where
