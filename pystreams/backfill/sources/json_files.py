"""Archives in lines of JSON, as ``pystreams consume --json`` prints them."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import msgspec
import pyarrow as pa

from pystreams.backfill.exchange.rows import Arrow, headers_column
from pystreams.backfill.sources.file_columns import encoded, headers_of_text
from pystreams.backfill.sources.source import BATCH_ROWS
from pystreams.backfill.sources.text_files import TextSource, packed
from pystreams.errors import ConfigError

_BLOCK_BYTES: Final = 4 << 20
_NULL: Final = b"null"
_NOTHING: Final = msgspec.Raw(_NULL)

_Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _Place(msgspec.Struct):
    """The place of a line's record, without its content, which the decoder skips."""

    topic: str | None = None
    partition: _Int64 | None = None
    offset: _Int64 | None = None
    timestamp: _Int64 | str | None = None


class _Line(_Place):
    key: msgspec.Raw = _NOTHING
    value: msgspec.Raw = _NOTHING
    headers: msgspec.Raw = _NOTHING


@dataclass(frozen=True)
class JsonSource(TextSource):
    """An archive in lines of JSON objects. See ``FileSource`` and ``TextSource``.

    Under ``text`` a key or value that is a JSON text stands for its characters, any other for itself, byte by byte as
    it is written; under ``json`` texts keep their quotes, too. ``null`` is null.
    """

    format_name: ClassVar[str] = "JSON"
    suffixes: ClassVar[tuple[str, ...]] = packed(".json", ".jsonl", ".ndjson")

    def batches(self, file: str, *, times_only: bool) -> Iterator[Arrow]:
        where = self.where(file)
        blocks = self._lines(file, _Place if times_only else _Line, where)
        for some in (
            lines[at : at + BATCH_ROWS] for lines in blocks for at in range(0, len(lines), BATCH_ROWS)
        ):
            columns = _places(some)
            if not times_only:
                columns["key"] = self._bytes([line.key for line in some], self.key_encoding, where)
                columns["value"] = self._bytes([line.value for line in some], self.value_encoding, where)
                headers = [headers_of_text(bytes(line.headers), where) for line in some]
                columns["headers"] = headers_column(headers, len(some))
            yield self.records(pa.record_batch(columns), file)

    def _lines(self, file: str, type: Any, where: str) -> Iterator[list[Any]]:
        """The lines of a file, block by block: so large ones are fewer at a time."""
        decoder = msgspec.json.Decoder(type)
        with self.open_text(file) as opened:
            start = opened.read(len(BOM_UTF8))
            rest = start.removeprefix(BOM_UTF8)
            while block := opened.read(_BLOCK_BYTES):
                whole, newline, last = (rest + block).rpartition(b"\n")
                rest = last
                if newline and (lines := _decoded(decoder, whole, where)):
                    yield lines
            if lines := _decoded(decoder, rest, where):
                yield lines

    def _bytes(self, raws: Sequence[msgspec.Raw], encoding: str, where: str) -> Arrow:
        if encoding == "json":
            return pa.array([_bytes(raw) for raw in raws], pa.binary())
        try:
            found = [_text_bytes(raw) for raw in raws]
            if encoding == "text":
                return pa.array(found, pa.binary())
            texts = [None if data is None else data.decode() for data in found]
        except UnicodeDecodeError as error:
            raise ConfigError("a line has a text that is not UTF-8", where=where, why=str(error)) from None
        return encoded(texts, encoding, where)


def _decoded(decoder: Any, lines: bytes, where: str) -> list[Any]:
    try:
        found: list[Any] = decoder.decode_lines(lines)
    except msgspec.DecodeError as error:
        raise ConfigError("a line is not a record in JSON", where=where, why=str(error)) from None
    return found


def _places(lines: Sequence[Any]) -> dict[str, Arrow]:
    """The columns that say where records stand, without those that no line has."""
    columns: dict[str, Arrow] = {}
    for name in ("topic", "partition", "offset", "timestamp"):
        values = [getattr(line, name) for line in lines]
        if name == "timestamp" and any(isinstance(value, str) for value in values):
            values = [None if value is None else str(value) for value in values]
        if any(value is not None for value in values):
            columns[name] = pa.array(values)
    return columns


def _bytes(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    return None if data == _NULL else data


def _text_bytes(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    if data[:1] == b'"':
        return msgspec.json.decode(data, type=str).encode()
    return None if data == _NULL else data
