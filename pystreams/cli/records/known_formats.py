"""The formats that ``--key-type`` and ``--value-type`` name, and how ``consume`` guesses a format without them."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pystreams.cli.records.format import Format
from pystreams.errors import ConfigError
from pystreams.nearest import did_you_mean, listing
from pystreams.serde.recognised import printable, session_of_text, window_of_text
from pystreams.times import read_time, show_time


def _number(name: str, code: str, parse: Callable[[str], float]) -> Format:
    """A number as Java packs it: big-endian, by its code in ``struct``."""
    packed = struct.Struct(f">{code}")

    def read(text: str) -> bytes:
        number = parse(text)
        try:
            return packed.pack(number)
        except (struct.error, OverflowError):
            raise ValueError(f"it does not fit in {packed.size} bytes") from None

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


def _read_window(text: str) -> bytes:
    key, _, start = text.rpartition("@")
    try:
        return key.encode() + struct.pack(">q", read_time(start))
    except ConfigError as error:
        raise ValueError(f"{error.what}: write KEY@TIME") from None


def _show_window(data: bytes) -> str:
    """A windowed key in Java's format, whose key is text."""
    found = window_of_text(data)
    if found is None:
        raise ValueError("not text followed by the start of a window")
    key, start = found
    return f"{key}@{show_time(start)}"


def _read_session(text: str) -> bytes:
    key, _, times = text.rpartition("@")
    start, _, end = times.partition("/")
    try:
        return key.encode() + struct.pack(">qq", read_time(end), read_time(start))
    except ConfigError as error:
        raise ValueError(f"{error.what}: write KEY@START/END") from None


def _show_session(data: bytes) -> str:
    """A session key in Java's format, whose key is text: the end comes before the start."""
    found = session_of_text(data)
    if found is None:
        raise ValueError("not text followed by the end and the start of a session")
    key, start, end = found
    return f"{key}@{show_time(start)}/{show_time(end)}"


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
            Format("windowed", _read_window, _show_window),
            Format("session", _read_session, _show_session),
            Format("hex", bytes.fromhex, bytes.hex),
        )
    }
)

#: Records whose schemas are in a registry.
SCHEMA_FORMATS = ("avro", "json_schema", "protobuf")

#: The names, as help and messages show them.
FORMAT_NAMES = listing([*FORMATS, *SCHEMA_FORMATS], most=len(FORMATS) + len(SCHEMA_FORMATS))


def guessed(data: bytes) -> str:
    """The name of the format that bytes seem to have: ``json`` for all text, which may be JSON; 8 bytes that are not
    text are a 64-bit integer, text followed by a plausible time is a window, by two of them a session, the rest is
    hex."""
    text = printable(data)
    if text is not None:
        return "json"
    if len(data) == 8:
        return "int"
    for name in ("windowed", "session"):
        try:
            FORMATS[name].show(data)
        except ValueError:
            continue
        return name
    return "hex"


def _show_guessed(data: bytes) -> str:
    name = guessed(data)
    if name == "json":
        return data.decode()
    return f"0x{data.hex()}" if name == "hex" else FORMATS[name].show(data)


#: The format of ``consume`` without an option: it guesses.
AUTO = Format("auto", str.encode, _show_guessed)


def format_named(name: str, topic: str, part: str, *, auto: bool) -> Format:
    """The format of that name for a topic's keys or values (``part``); ``auto``: whether guessing is allowed.
    Raises ``ConfigError``."""
    if auto and name == AUTO.name:
        return AUTO
    if name in FORMATS:
        return FORMATS[name]
    if name in SCHEMA_FORMATS:
        from pystreams.cli.records.schema_formats import schema_format

        return schema_format(name, topic, part)
    names = [*FORMATS, *SCHEMA_FORMATS, *([AUTO.name] if auto else [])]
    raise ConfigError(
        f"There is no format {name!r}",
        why=f"there are {listing(names, most=len(names))}",
        hint=did_you_mean(name, names),
    )
