"""Archives in text files: the common part of CSV and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pystreams.backfill.exchange.rows import Arrow
from pystreams.backfill.sources.file_columns import check_encoding
from pystreams.backfill.sources.file_index import Found, summaries
from pystreams.backfill.sources.file_source import FileSource, of_partition
from pystreams.backfill.sources.ranges import InputRange, LastRecord
from pystreams.errors import OffsetOutOfRangeError
from pystreams.ids import TopicPartition


def packed(*suffixes: str) -> tuple[str, ...]:
    """The suffixes, and those of the same files packed: all that Arrow unpacks."""
    return tuple(suffix + packing for suffix in suffixes for packing in ("", ".gz", ".bz2", ".zst", ".lz4"))


@dataclass(frozen=True)
class TextSource(FileSource):
    """``key_encoding`` and ``value_encoding`` say how bytes are written as text: ``text`` (UTF-8), ``json``,
    ``base64``, ``hex``, or ``int`` and ``float``, which become the eight bytes of those serdes. Text files
    have no index: a file is read once to find the partitions in it, and once for each of these partitions."""

    key_encoding: str = field(default="text", kw_only=True)
    value_encoding: str = field(default="text", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_encoding(self.key_encoding)
        check_encoding(self.value_encoding)

    def pieces(self, file: str) -> list[Found]:
        return summaries(self.batches(file, times_only=True), file)

    def rows(self, file: str, input: InputRange, *, times_only: bool = False) -> Iterator[Arrow]:
        for batch in self.batches(file, times_only=times_only):
            yield of_partition(batch, input.partition)

    def last_before(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, LastRecord]:
        """None: to find one, a file would be read whole once more."""
        return {}

    def batches(self, file: str, *, times_only: bool) -> Iterator[Arrow]:
        """All rows of a file in ``RECORD_SCHEMA``; with ``times_only`` keys, values and headers are null."""
        raise NotImplementedError

    @contextmanager
    def open_text(self, file: str) -> Iterator[Any]:
        """A file as a stream of bytes, unpacked."""
        try:
            opened = self.folder.open_stream(file)
        except FileNotFoundError:
            raise OffsetOutOfRangeError(
                "a file of the archive is gone", where=self.where(file), hint="restore the file"
            ) from None
        with opened:
            yield opened
