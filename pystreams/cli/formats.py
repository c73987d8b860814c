"""How ``produce`` and ``consume`` write bytes as text: a format has a name, reads text, and shows bytes."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pystreams.errors import ConfigError, SerializationError
from pystreams.nearest import did_you_mean, listing
from pystreams.times import show_time


@dataclass(frozen=True, slots=True)
class Format:
    """``read`` makes bytes of what a person types, ``show`` text of bytes. Both raise ``ValueError``."""

    name: str
    read: Callable[[str], bytes]
    show: Callable[[bytes], str]


def _number(name: str, code: str, parse: Callable[[str], float]) -> Format:
    """A number as Java packs it: big-endian, by its code in ``struct``."""
    packed = struct.Struct(f">{code}")

    def read(text: str) -> bytes:
        number = parse(text)
        try:
            return packed.pack(number)
        except (struct.error, OverflowError):
            raise ValueError(f"it does not fit into {packed.size} bytes") from None

    def show(data: bytes) -> str:
        if len(data) != packed.size:
            raise ValueError(f"{len(data)} bytes instead of {packed.size}")
        return str(packed.unpack(data)[0])

    return Format(name, read, show)


_INT = _number("int", "q", int)


def _read_bool(text: str) -> bytes:
    words = {"true": b"\x01", "false": b"\x00"}
    if text not in words:
        raise ValueError("neither true nor false")
    return words[text]


def _show_bool(data: bytes) -> str:
    if data not in (b"\x00", b"\x01"):
        raise ValueError("neither the byte 0 nor 1")
    return "true" if data == b"\x01" else "false"


def _read_json(text: str) -> bytes:
    json.loads(text)
    return text.encode()


def _show_json(data: bytes) -> str:
    return json.dumps(json.loads(data), ensure_ascii=False)


def _guess(data: bytes) -> str:
    """Text if it is text; 8 bytes that are not are a 64-bit integer; text followed by a plausible time is a window."""
    text = _printable(data)
    if text is not None:
        return text
    if len(data) == 8:
        return _INT.show(data)
    inner = _printable(data[:-8]) if len(data) > 8 else None
    if inner is not None and data[-8:-5] in (b"\x00\x00\x00", b"\x00\x00\x01"):
        return f"{inner}@{show_time(struct.unpack('>q', data[-8:])[0])}"
    return f"0x{data.hex()}"


def _printable(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(c.isprintable() or c in "\t\n" for c in text) else None


#: By the names that ``--key-type`` and ``--value-type`` take. Bytes are those of pystreams' own serdes.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        f.name: f
        for f in (
            Format("str", str.encode, bytes.decode),
            _INT,
            _number("int32", "i", int),
            _number("int16", "h", int),
            _number("float", "d", float),
            _number("float32", "f", float),
            Format("bool", _read_bool, _show_bool),
            Format("uuid", lambda text: str(uuid.UUID(text)).encode(), bytes.decode),
            Format("json", _read_json, _show_json),
            Format("hex", bytes.fromhex, bytes.hex),
        )
    }
)

#: Records whose schemas are in a registry.
SCHEMA_FORMATS = ("avro", "json_schema", "protobuf")

#: For people.
FORMAT_NAMES = listing([*FORMATS, *SCHEMA_FORMATS], most=len(FORMATS) + len(SCHEMA_FORMATS))

#: What ``consume`` shows when nothing is said.
AUTO = Format("auto", str.encode, _guess)


def format_named(name: str, topic: str, part: str, *, auto: bool) -> Format:
    """The format of that name for a topic's keys or values (``part``); ``auto`` tells whether guessing is allowed.
    Raises ``ConfigError``."""
    if auto and name == AUTO.name:
        return AUTO
    if name in FORMATS:
        return FORMATS[name]
    if name in SCHEMA_FORMATS:
        from pystreams.cli.schema_formats import schema_format

        return schema_format(name, topic, part)
    names = [*FORMATS, *SCHEMA_FORMATS, *([AUTO.name] if auto else [])]
    raise ConfigError(
        f"There is no format {name!r}",
        why=f"there are {listing(names, most=len(names))}",
        hint=did_you_mean(name, names),
    )


def read_text(format_: Format, text: str, where: str) -> bytes:
    """Bytes of what somebody typed. Raises ``SerializationError`` that names the place."""
    try:
        return format_.read(text)
    except ValueError as error:
        raise SerializationError(
            f"{text!r} cannot be read as {format_.name}",
            where=where,
            why=str(error),
            hint="nothing after this line was written",
        ) from None


def show_bytes(format_: Format, data: bytes | None) -> str:
    """Text for bytes, ``null`` for none; bytes that are not of the format are shown in hex with a mark."""
    if data is None:
        return "null"
    try:
        return format_.show(data)
    except ValueError:
        return f"<not {format_.name}: 0x{data.hex()}>"
