"""Keys and values of a store as JSON: by the model's own encoding, as the store's serde knows it.

| type of the store | in JSON | a key in a path |
| --- | --- | --- |
| ``str`` | a string | the text itself |
| ``int``, ``float``, ``bool`` | number, ``true``, ``false`` | the same |
| ``bytes``, ``uuid.UUID`` | a string: base64, the text form | the same, without quotes |
| Struct, dataclass, TypedDict, pydantic model, ``dict``, ``list`` | as ``JsonSerde`` writes it | this JSON |
| windowed key | ``{"key": ..., "start": ..., "end": ...}`` | this JSON |
| any other | ``{"base64": ...}``, its bytes, if msgspec cannot write it | this JSON |
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Callable
from typing import Any, Final

import msgspec

from pystreams.serde.base import AnySerde
from pystreams.serde.faust_models import FaustSerde
from pystreams.serde.primitives import VALUE_TYPES, BytesSerde, StrSerde, UUIDSerde
from pystreams.serde.shapes import type_name
from pystreams.serde.structured import JsonSerde, MsgpackSerde
from pystreams.serde.windowed import SessionWindowedSerde, TimeWindowedSerde
from pystreams.serving.query_errors import BadQueryError
from pystreams.windowed import Windowed

#: Errors with which codecs, those of users, too, say that a text is not of their type.
_WRONG: Final = Exception

#: Types whose JSON is a string: a path has it without quotes.
_AS_TEXT: Final = StrSerde, BytesSerde, UUIDSerde


class _WindowedJson(msgspec.Struct, forbid_unknown_fields=True):
    key: msgspec.Raw
    start: int
    end: int


class _BytesJson(msgspec.Struct, forbid_unknown_fields=True):
    base64: bytes


class JsonForm:
    """The JSON of the keys, or of the values, of a store: ``topic`` is its changelog, which serdes receive."""

    def __init__(self, serde: AnySerde, topic: str) -> None:
        self.name = name_of(serde)
        self._serde = serde
        self._write = serde.key_serializer(topic)
        self._read = serde.deserializer(topic)
        self._read_json = self._reader(serde, topic)

    def show(self, value: Any) -> msgspec.Raw:
        """JSON for a value."""
        try:
            return msgspec.Raw(_encode(value))
        except (TypeError, ValueError, RecursionError):
            return msgspec.Raw(_encode({"base64": self._write(value)}))

    def read_text(self, text: str) -> Any:
        """The key that a path or a parameter has as text. Raises ``BadQueryError``."""
        try:
            key = self._of_text(text)
            # A number that is too large is only found when it is written.
            self._write(key)
        except BadQueryError:
            raise
        except _WRONG as error:
            raise BadQueryError(
                f"{text[:200]!r} is not a key of this store",
                why=f"its keys are {self.name}: {str(error)[:200]}",
                hint=self._hint(),
            ) from None
        return key

    def place_bytes(self, key: Any) -> bytes:
        """The bytes of a key, in whose order entries are."""
        return self._write(key)

    def key_of(self, data: bytes) -> Any:
        """The key of ``place_bytes``, which a client has sent back. Raises ``BadQueryError``."""
        try:
            return self._read(data)
        except _WRONG:
            raise BadQueryError(
                "the cursor is not one of this store", hint="give the cursor of the page before as it is"
            ) from None

    def _of_text(self, text: str) -> Any:
        match self._serde:
            case StrSerde():
                return text
            case UUIDSerde():
                return uuid.UUID(text)
            case BytesSerde():
                return _bytes_of(text)
        return self._read_json(text.encode())

    def _reader(self, serde: AnySerde, topic: str) -> Callable[[bytes], Any]:
        """The function that reads JSON."""
        if isinstance(serde, JsonSerde | FaustSerde):
            return serde.deserializer(topic)
        if isinstance(serde, MsgpackSerde):
            return JsonSerde(serde.type).deserializer(topic)
        if isinstance(serde, TimeWindowedSerde | SessionWindowedSerde):
            read_inner = self._reader(serde.inner, topic)

            def read_windowed(data: bytes) -> Any:
                parts = msgspec.json.decode(data, type=_WindowedJson)
                return Windowed(read_inner(bytes(parts.key)), parts.start, parts.end)

            return read_windowed
        if type(serde) in VALUE_TYPES:
            return msgspec.json.Decoder(VALUE_TYPES[type(serde)]).decode

        def read_any(data: bytes) -> Any:
            try:
                return self._read(msgspec.json.decode(data, type=_BytesJson).base64)
            except msgspec.ValidationError:
                return msgspec.json.decode(data)

        return read_any

    def _hint(self) -> str:
        match self._serde:
            case UUIDSerde():
                return "write its 36 characters"
            case BytesSerde():
                return "write the bytes in base64"
        return "write the key as JSON, and percent-encode it"


def name_of(serde: AnySerde) -> str:
    """The type of a serde's values, for people."""
    if isinstance(serde, JsonSerde | MsgpackSerde):
        return type_name(serde.type)
    return repr(serde)


def _bytes_of(text: str) -> bytes:
    padded = text + "=" * (-len(text) % 4)
    try:
        return base64.b64decode(padded, altchars=b"-_" if {*"-_"} & {*text} else None, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _plain(value: Any) -> Any:
    """What msgspec does not know by itself: models of pydantic and of Faust."""
    for method in ("model_dump", "asdict"):
        dump = getattr(value, method, None)
        if callable(dump):
            return dump()
    raise TypeError(f"{type(value).__qualname__} has no JSON form")


_encode: Final = msgspec.json.Encoder(enc_hook=_plain).encode
