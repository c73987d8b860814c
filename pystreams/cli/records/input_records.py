"""Lines of text, of JSON or of CSV as records to write."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

from pystreams.cli.records.format import Format
from pystreams.cli.records.json_records import content_of, headers_of, read_json_line, text_of
from pystreams.errors import ConfigError, SerializationError
from pystreams.nearest import not_among
from pystreams.record import NO_HEADERS, Headers
from pystreams.times import read_time

#: The number of characters of a line that an error shows.
_SHOWN_CHARACTERS: Final = 200
_CELL_CHARACTERS_MAX: Final = 1 << 30
#: A number as JSON writes it; 007 and 1.000,5 stay text.
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


#: A JSON object, whose fields keep their JSON text.
Object: TypeAlias = dict[str, msgspec.Raw]

_decode = msgspec.json.Decoder(Object).decode


class InputRecord(NamedTuple):
    """A record that was read. ``timestamp`` None: now; ``partition`` None: by the key."""

    line: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: Headers = NO_HEADERS
    partition: int | None = None


class InputReader(Protocol):
    """Reads records from lines. Raises ``SerializationError``, which names the line and shows it."""

    def __call__(self, lines: Iterable[str]) -> Iterator[InputRecord]: ...


@dataclass(frozen=True, slots=True)
class TextLines:
    """Each line is a value, or a key and a value with ``separator`` between them."""

    keys: Format
    values: Format
    separator: str | None

    def __call__(self, lines: Iterable[str]) -> Iterator[InputRecord]:
        for number, line in _numbered(lines):
            key, value = None, line
            if self.separator is not None:
                before, found, value = line.partition(self.separator)
                if not found:
                    raise SerializationError(
                        f"There is no {self.separator!r} in {_excerpt(line)}",
                        where=f"line {number}",
                        why="--key-separator says that it separates key and value",
                    )
                key = _as(self.keys, before, number)
            yield InputRecord(number, key, _as(self.values, value, number))


@dataclass(frozen=True, slots=True)
class Fields:
    """Which fields of an object are a record's key and time, besides being part of the value; a dot leads into an
    object within the object. Null means no key, or no time."""

    key: str | None
    timestamp: str | None
    keys: Format

    def key_of(self, content: Object, number: int) -> bytes | None:
        if self.key is None:
            return None
        found = _field(content, self.key, number)
        return None if bytes(found) == b"null" else _as(self.keys, text_of(found), number)

    def timestamp_of(self, content: Object, number: int) -> int | None:
        if self.timestamp is None:
            return None
        found = _field(content, self.timestamp, number)
        if bytes(found) == b"null":
            return None
        text = text_of(found)
        try:
            # A whole number may be written as 1.7e12, too.
            time_ms = int(float(text)) if _NUMBER.fullmatch(text) and not text.isdigit() else read_time(text)
        except (ConfigError, OverflowError):
            time_ms = -1
        if time_ms < 0:
            raise SerializationError(
                f"{_excerpt(text)} is not a time",
                where=f"line {number}, field {self.timestamp}",
                hint="write milliseconds since 1970, or ISO 8601 like 2013-01-01T10:00:00Z",
            )
        return time_ms


@dataclass(frozen=True, slots=True)
class ObjectLines:
    """Each line is a value, a JSON object, some of whose fields are also the key or the time."""

    fields: Fields
    values: Format

    def __call__(self, lines: Iterable[str]) -> Iterator[InputRecord]:
        for number, line in _numbered(lines):
            try:
                content = _decode(line)
            except msgspec.DecodeError as error:
                raise _unreadable(line, "a JSON object", number, str(error)) from None
            key, time_ms = self.fields.key_of(content, number), self.fields.timestamp_of(content, number)
            yield InputRecord(number, key, _as(self.values, line, number), time_ms)


@dataclass(frozen=True, slots=True)
class CsvRows:
    """The first line has the names of columns, each other line is a value: a JSON object with these names. Cells that
    look like numbers become numbers, except in the columns ``as_text``; empty cells become null."""

    fields: Fields
    values: Format
    as_text: frozenset[str]

    def __call__(self, lines: Iterable[str]) -> Iterator[InputRecord]:
        # A cell may be as large as the topic allows a record to be.
        csv.field_size_limit(_CELL_CHARACTERS_MAX)
        rows = csv.reader(lines, strict=True)
        try:
            names = next(rows, [])
            self._check(names)
            number = rows.line_num
            for cells in rows:
                first, number = number + 1, rows.line_num
                if not cells:
                    continue
                if len(cells) != len(names):
                    raise _unreadable(
                        ",".join(cells),
                        "a row",
                        first,
                        f"it has {len(cells)} cells, but the first line has {len(names)}",
                    )
                content = {name: self._cell(name, cell) for name, cell in zip(names, cells, strict=True)}
                text = msgspec.json.encode(content).decode()
                key, time_ms = self.fields.key_of(content, first), self.fields.timestamp_of(content, first)
                yield InputRecord(first, key, _as(self.values, text, first), time_ms)
        except csv.Error as error:
            raise SerializationError(
                "A row cannot be read as CSV", where=f"line {rows.line_num}", why=str(error)
            ) from None

    def _check(self, names: list[str]) -> None:
        for name in self.as_text - set(names):
            raise ConfigError(
                f"There is no column {name}", where="line 1", **not_among(name, names, "its columns")
            )
        for name in names:
            if not name or names.count(name) > 1:
                raise SerializationError(
                    f"The column name {name!r} is empty or occurs twice", where="line 1", why=",".join(names)
                )

    def _cell(self, name: str, text: str) -> msgspec.Raw:
        if not text:
            return msgspec.Raw(b"null")
        if name not in self.as_text and _NUMBER.fullmatch(text):
            return msgspec.Raw(text.encode())
        return msgspec.Raw(msgspec.json.encode(text))


@dataclass(frozen=True, slots=True)
class JsonRecords:
    """Each line is a record as ``consume --json`` writes it. ``format_of`` gives a format by its name and the part that
    it is for; ``keys`` and ``values`` are the formats of lines that do not name one."""

    keys: Format
    values: Format
    format_of: Callable[[str, str], Format]

    def __call__(self, lines: Iterable[str]) -> Iterator[InputRecord]:
        for number, line in _numbered(lines):
            if not line.strip():
                continue
            try:
                record = read_json_line(line)
                key_format = self._format(record.key_type, "key", self.keys)
                value_format = self._format(record.value_type, "value", self.values)
                timestamp = record.timestamp
                yield InputRecord(
                    number,
                    content_of(record.key, key_format, named=record.key_type is not None),
                    content_of(record.value, value_format, named=record.value_type is not None),
                    timestamp if timestamp is not None and timestamp >= 0 else None,
                    headers_of(record.headers),
                    record.partition,
                )
            except ConfigError as error:
                error.extend(where=f"line {number}")
                raise
            except ValueError as error:
                raise SerializationError(
                    f"{_excerpt(line)} is not a record",
                    where=f"line {number}",
                    why=str(error),
                    hint='write a record like {"key": "a", "value": {"n": 1}}; if each line is a value,'
                    " leave out --json",
                ) from None

    def _format(self, name: str | None, part: str, otherwise: Format) -> Format:
        return otherwise if name is None else self.format_of(name, part)


def _numbered(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines, 1):
        yield number, line.rstrip("\r\n")


def _as(format_: Format, text: str, number: int) -> bytes:
    try:
        return format_.read(text)
    except ValueError as error:
        raise _unreadable(text, format_.name, number, str(error)) from None


def _field(content: Object, name: str, number: int) -> msgspec.Raw:
    part, _, rest = (name, "", "") if name in content else name.partition(".")
    try:
        found = content[part]
        return _field(_decode(found), rest, number) if rest else found
    except (KeyError, msgspec.DecodeError):
        raise SerializationError(
            f"There is no field {name}", where=f"line {number}", **not_among(name, content, "its fields")
        ) from None


def _unreadable(text: str, as_what: str, number: int, why: str) -> SerializationError:
    return SerializationError(
        f"{_excerpt(text)} cannot be read as {as_what}", where=f"line {number}", why=why
    )


def _excerpt(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]!r}…"
