"""Records as JSON, one per line: ``produce --json`` restores each record that ``consume --json`` has written, byte by
byte.

    {"partition": 0, "offset": 7, "timestamp": 1700000000000, "key": "a", "value": {"n": 1}, "headers": [["h", "x"]]}

A JSON string is the text of a key or value, null is null, anything else is the record's own JSON text, with its spaces.
Where this would not give the original bytes, ``key_type`` or ``value_type`` names the format: ``int``,
``hex``, ``json`` (a string that is JSON itself), ... A header's value is a text, null, or has ``"hex"`` behind it.
"""

from __future__ import annotations

import json
from typing import Final

import msgspec

from pystreams.cli.records.format import Format
from pystreams.cli.records.known_formats import AUTO, FORMATS, SCHEMA_FORMATS, guessed
from pystreams.record import NO_HEADERS, Headers, RecordBatch
from pystreams.serde.recognised import printable

_HEX: Final = "hex"
_JSON_SPACE: Final = " \t\r\n"


class JsonRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A line. ``value`` is required: without it a deletion (null) could not be distinguished from a forgotten value."""

    value: msgspec.Raw
    key: msgspec.Raw = msgspec.Raw(b"null")
    key_type: str | None = None
    value_type: str | None = None
    timestamp: int | None = None
    headers: list[list[str | None]] = []
    partition: int | None = None
    #: The place that the record came from. It is ignored: the log assigns a new one.
    topic: str | None = None
    offset: int | None = None


_decode = msgspec.json.Decoder(JsonRecord).decode


def json_line(batch: RecordBatch, index: int, key_format: Format, value_format: Format) -> str:
    """Record ``index`` of a batch."""
    key, key_type = _shown(batch.keys[index], key_format)
    value, value_type = _shown(batch.values[index], value_format)
    fields = {
        "partition": str(batch.partition),
        "offset": str(batch.offsets[index]),
        "timestamp": str(batch.timestamps[index]),
        "key": key,
        "key_type": key_type and json.dumps(key_type),
        "value": value,
        "value_type": value_type and json.dumps(value_type),
    }
    headers = NO_HEADERS if batch.headers is None else batch.headers[index]
    if headers:
        shown = [[name, *_shown_header(content)] for name, content in headers]
        fields["headers"] = json.dumps(shown, ensure_ascii=False)
    return "{" + ", ".join(f'"{name}": {text}' for name, text in fields.items() if text is not None) + "}"


def read_json_line(line: str) -> JsonRecord:
    """Read a line. Raises ``ValueError`` with the reason if the line is wrong."""
    try:
        return _decode(line)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def content_of(raw: msgspec.Raw, format_: Format, *, named: bool) -> bytes | None:
    """The bytes of a key or value in a line. ``named``: whether the line names the format. Raises ``ValueError``."""
    if bytes(raw) == b"null" and not (named and format_.name == "json"):
        return None
    if format_.name == "json":
        return bytes(raw)
    return format_.read(text_of(raw))


def text_of(raw: msgspec.Raw) -> str:
    """The text of a JSON string; any other JSON as it is."""
    data = bytes(raw)
    return msgspec.json.decode(data, type=str) if data[:1] == b'"' else data.decode()


def headers_of(given: list[list[str | None]]) -> Headers:
    """The headers in a line. Raises ``ValueError``."""
    return tuple(map(_header, given)) if given else NO_HEADERS


def _header(given: list[str | None]) -> tuple[str, bytes | None]:
    match given:
        case [str(name), None]:
            return name, None
        case [str(name), str(text)]:
            return name, text.encode()
        case [str(name), str(text), "hex"]:
            return name, bytes.fromhex(text)
    raise ValueError(
        f'{given!r} is not a header: write ["name", "text"], ["name", null] or ["name", "00ff", "hex"]'
    )


def _shown_header(content: bytes | None) -> list[str | None]:
    if content is None:
        return [None]
    text = printable(content)
    return [content.hex(), _HEX] if text is None else [text]


def _shown(data: bytes | None, format_: Format) -> tuple[str, str | None]:
    """JSON for a key or value, and the name of its format, if that is not text or JSON."""
    if data is None:
        return "null", None
    if format_ is AUTO:
        format_ = FORMATS[guessed(data)]
    if format_.name == "json":
        return _shown_json(data)
    if format_.name != "str":
        typed = _shown_as(data, format_)
        if typed is not None:
            return typed, format_.name
    text = printable(data) if format_.name != "str" else _text(data)
    return (json.dumps(data.hex()), _HEX) if text is None else (json.dumps(text, ensure_ascii=False), None)


def _shown_as(data: bytes, format_: Format) -> str | None:
    """The bytes as JSON in this format. None if they are not of the format, or if reading the JSON would give other
    bytes."""
    try:
        text = format_.show(data)
        exact = format_.name in SCHEMA_FORMATS or format_.read(text) == data
    except ValueError:
        return None
    if not exact:
        return None
    return text if _is_bare_json(text) else json.dumps(text, ensure_ascii=False)


def _shown_json(data: bytes) -> tuple[str, str | None]:
    text = _text(data)
    if text is None:
        return json.dumps(data.hex()), _HEX
    if not _is_json(text):
        return json.dumps(text, ensure_ascii=False), None
    # A string would be read as its text, and null as a missing value.
    return text, None if _is_bare_json(text) else "json"


def _is_json(text: str) -> bool:
    """Whether the text can be in a line without changes."""
    if "\n" in text or "\r" in text or text.strip(_JSON_SPACE) != text:
        return False
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _is_bare_json(text: str) -> bool:
    return text[:1] != '"' and text != "null" and _is_json(text)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
