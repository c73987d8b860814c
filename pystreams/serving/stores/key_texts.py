"""How a user writes a key of a store, for the error about a text that is no key of it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import msgspec.inspect as kinds

from pystreams.errors import SerializationError
from pystreams.serde.base import AnySerde
from pystreams.serde.faust_models import FaustSerde
from pystreams.serde.primitives import BoolSerde, BytesSerde, FloatSerde, IntSerde, StrSerde, UUIDSerde
from pystreams.serde.structured import JsonSerde, MsgpackSerde, misfit
from pystreams.serde.windowed import SessionWindowedSerde, TimeWindowedSerde

_PLAIN: Final[dict[type, str]] = {
    StrSerde: "write the text itself",
    IntSerde: "write a whole number, for example 7",
    FloatSerde: "write a number, for example 0.5",
    BoolSerde: "write true or false",
    UUIDSerde: "write its 36 characters",
    BytesSerde: "write the bytes in base64",
}


def is_json(serde: AnySerde) -> bool:
    """Whether keys are written as JSON with fields or elements."""
    return type(serde) not in _PLAIN


def how_to_write(serde: AnySerde) -> str:
    """The advice for keys of a serde."""
    if not is_json(serde):
        return _PLAIN[type(serde)]
    if isinstance(serde, TimeWindowedSerde | SessionWindowedSerde):
        return (
            'write it as JSON: {"key": ..., "start": ..., "end": ...}, with times in milliseconds since 1970'
        )
    type_ = serde.type if isinstance(serde, JsonSerde | MsgpackSerde | FaustSerde) else None
    names = _fields(type_)
    return f"write it as JSON: {{{', '.join(names)}}}" if names else "write it as JSON"


def why_not(error: Exception) -> str:
    """Why a text is no key, if that says more than ``how_to_write``: the misfit between JSON and the type, or the
    message of the serde for a key that it cannot write."""
    cause = error.__cause__ if isinstance(error, SerializationError) else error
    if isinstance(cause, Exception) and (found := misfit(cause)):
        return found
    if isinstance(error, struct.error | OverflowError):
        return str(error)
    # A ValueError is about JSON itself.
    return error.what if isinstance(error, SerializationError) and not isinstance(cause, ValueError) else ""


def _fields(type_: Any) -> list[str]:
    """The fields of a model's JSON, each with a place for its value; empty for a type without named fields."""
    names = _names_of_model(type_)
    if names is not None:
        return [f'"{name}": ...' for name in names]
    try:
        info = kinds.type_info(type_)
    except (TypeError, NameError):
        return []
    if not isinstance(info, kinds.StructType | kinds.DataclassType | kinds.TypedDictType):
        return []
    tag = (
        [f'"{info.tag_field}": "{info.tag}"'] if isinstance(info, kinds.StructType) and info.tag_field else []
    )
    return tag + [f'"{field.encode_name}": ...' for field in info.fields]


def _names_of_model(type_: Any) -> list[str] | None:
    """The fields of a model of pydantic or of Faust, which msgspec does not know; None: it is none."""
    of_pydantic = getattr(type_, "model_fields", None)
    if isinstance(of_pydantic, dict):
        return [field.alias or name for name, field in of_pydantic.items()]
    of_faust = getattr(getattr(type_, "_options", None), "fields", None)
    return list(of_faust) if isinstance(of_faust, Mapping) else None
