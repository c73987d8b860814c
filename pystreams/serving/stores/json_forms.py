"""Keys and values of a store as JSON, in the encoding of the model that the store's serde has.

| type of the store | in JSON | a key in a path |
| --- | --- | --- |
| ``str`` | a string | the text itself |
| ``int``, ``float``, ``bool`` | number, ``true``, ``false`` | the same |
| ``bytes``, ``uuid.UUID`` | a string: base64, the text form | the same, without quotes |
| Struct, dataclass, TypedDict, pydantic model, ``dict``, ``list`` | as ``JsonSerde`` writes it | this JSON |
| windowed key | ``{"key": ..., "start": ..., "end": ...}`` | this JSON |
| any other | ``{"base64": ...}``, its bytes, if msgspec cannot write it | this JSON |

Only serdes of pystreams read bytes of a request, because they never execute code from these bytes. A serde of the
application may unpickle: so it gets no bytes of a request, but only serializes objects that were made from JSON.
"""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Callable
from typing import Any, Final

import msgspec

from pystreams.serde.base import AnySerde, FunctionSerde, Serde
from pystreams.serde.faust_models import FaustSerde
from pystreams.serde.primitives import VALUE_TYPES, BytesSerde, StrSerde, UUIDSerde
from pystreams.serde.shapes import type_name
from pystreams.serde.structured import JsonSerde, MsgpackSerde
from pystreams.serde.windowed import SessionWindowedSerde, TimeWindowedSerde
from pystreams.serving.query_errors import BadQueryError
from pystreams.serving.stores.key_texts import how_to_write, is_json, why_not
from pystreams.windowed import Windowed

#: The errors that codecs, including those of users, may raise for a text that is not of their type.
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
        #: Whether the serde may read bytes of a request, such as those of a cursor.
        self.reads_requests = _reads_requests(serde)
        #: Whether the serde only computes, and does not, for example, ask a schema registry.
        self.computes_only = type(serde) in VALUE_TYPES or (
            isinstance(serde, JsonSerde | MsgpackSerde) and type(serde).__module__.startswith("pystreams.")
        )
        self._read_json = _json_reader(serde, topic)

    def show(self, value: Any) -> msgspec.Raw:
        """JSON for a value."""
        try:
            return msgspec.Raw(_encode(value))
        except (TypeError, ValueError, RecursionError):
            return msgspec.Raw(_encode({"base64": self._write(value)}))

    def read_text(self, text: str) -> tuple[Any, bytes]:
        """The key for the text in a path or a parameter, and its bytes. Raises ``BadQueryError``."""
        try:
            key = self._of_text(text)
            # Serialize within this ``try``, because only this finds a number that is too large.
            return key, self._write(key)
        except BadQueryError:
            raise
        except _WRONG as error:
            wrong = BadQueryError(
                f"{text[:200]!r} is not a key of this store",
                why=": ".join(filter(None, (f"its keys are {self.name}", why_not(error)[:200]))),
                hint=how_to_write(self._serde),
            )
            if is_json(self._serde):
                wrong.fields = {"url": "in a URL this JSON is percent-encoded"}
            raise wrong from None

    def place_bytes(self, key: Any) -> bytes:
        """The bytes of a key, in whose order entries are."""
        return self._write(key)

    def key_of(self, data: bytes) -> Any:
        """The key of ``place_bytes``, which a client has sent back. Only if ``reads_requests``. Raises
        ``BadQueryError``."""
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


def _reads_requests(serde: AnySerde) -> bool:
    """Whether the serde, with all serdes inside it, is one of pystreams. Faust's codecs other than JSON may unpickle,
    and so may a serde of two functions of the application."""
    if isinstance(serde, FaustSerde):
        return type(serde) is FaustSerde and serde.read_as == "json"
    if not type(serde).__module__.startswith("pystreams.") or isinstance(serde, FunctionSerde):
        return False
    return all(_reads_requests(part) for part in vars(serde).values() if isinstance(part, Serde))


def _json_reader(serde: AnySerde, topic: str) -> Callable[[bytes], Any]:
    """The function that reads the JSON of a key in a request."""
    if isinstance(serde, JsonSerde):
        return serde.deserializer(topic)
    if isinstance(serde, FaustSerde):
        return FaustSerde(serde.type, "json").deserializer(topic)
    if isinstance(serde, MsgpackSerde):
        return JsonSerde(serde.type).deserializer(topic)
    if isinstance(serde, TimeWindowedSerde | SessionWindowedSerde):
        read_inner = _json_reader(serde.inner, topic)

        def read_windowed(data: bytes) -> Any:
            parts = msgspec.json.decode(data, type=_WindowedJson)
            return Windowed(read_inner(bytes(parts.key)), parts.start, parts.end)

        return read_windowed
    if type(serde) in VALUE_TYPES:
        return msgspec.json.Decoder(VALUE_TYPES[type(serde)]).decode
    read = serde.deserializer(topic) if _reads_requests(serde) else _refuse_bytes

    def read_any(data: bytes) -> Any:
        try:
            given = msgspec.json.decode(data, type=_BytesJson).base64
        except msgspec.ValidationError:
            return msgspec.json.decode(data)
        return read(given)

    return read_any


def _refuse_bytes(_data: bytes) -> Any:
    raise BadQueryError(
        "a key of this store cannot be given as bytes",
        why="a serde of the application reads them, which may unpickle them and so run code",
        hint="write the key as JSON, if it has such a form; or give the store a serde of pystreams",
    )


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
    """The plain form of values that msgspec does not know by itself: models of pydantic and of Faust."""
    for method in ("model_dump", "asdict"):
        dump = getattr(value, method, None)
        if callable(dump):
            return dump()
    raise TypeError(f"{type(value).__qualname__} has no JSON form")


_encode: Final = msgspec.json.Encoder(enc_hook=_plain).encode
