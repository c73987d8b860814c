"""Codecs for types that are or contain pydantic models: pydantic reads, validates and writes them.

pydantic is never imported here: a program with a model has imported it already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from pystreams.errors import TopologyError
from pystreams.serde.shapes import type_name

_Codec = tuple[Callable[[Any], bytes], Callable[[bytes], Any]]


class PydanticModels:
    """Makes the codecs of one type. ``holds_sets``: whether a set is known to occur outside of the models.

    Raises ``TopologyError`` if pydantic does not support a type around the models.
    """

    def __init__(self, type_: Any, *, holds_sets: bool) -> None:
        pydantic = sys.modules["pydantic"]
        try:
            adapter = pydantic.TypeAdapter(type_)
        except pydantic.PydanticUserError as error:
            raise TopologyError(
                f"{type_name(type_)} contains pydantic models, but pydantic cannot read it",
                why=str(error).partition("\n")[0],
                hint="around pydantic models use models, dataclasses, TypedDicts, lists and dicts; no msgspec.Struct",
            ) from error
        self._serializer = adapter.serializer
        self._validator = adapter.validator
        self._sorts = holds_sets or _schema_holds_sets(adapter.core_schema)

    def json(self) -> _Codec:
        if not self._sorts:
            return self._serializer.to_json, self._validator.validate_json
        encode = msgspec.json.Encoder().encode
        return lambda value: encode(self._plain(value)), self._validator.validate_json

    def msgpack(self) -> _Codec:
        """The codec for MessagePack with the same content as JSON."""
        encode, decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder().decode
        validate = self._validator.validate_python
        return lambda value: encode(self._plain(value)), lambda data: validate(decode(data))

    def _plain(self, value: Any) -> Any:
        """``value`` in the form of pydantic's JSON: dicts, lists, strings, numbers; sets as sorted lists."""
        plain = self._serializer.to_python(value, mode="json")
        return _sorted_like(plain, self._serializer.to_python(value)) if self._sorts else plain


def _schema_holds_sets(schema: Any) -> bool:
    """Whether a set occurs in a pydantic core schema: nested dicts and lists, each kind named by ``type``."""
    if isinstance(schema, dict):
        return schema.get("type") in ("set", "frozenset") or any(map(_schema_holds_sets, schema.values()))
    return isinstance(schema, list | tuple) and any(map(_schema_holds_sets, schema))


def _sorted_like(plain: Any, original: Any) -> Any:
    """``plain`` with those lists sorted that are sets in ``original``. Where a user's serializer changed the form, it
    is left as it is."""
    if isinstance(plain, list) and isinstance(original, set | frozenset):
        return sorted(plain, key=msgspec.json.Encoder(order="deterministic").encode)
    if isinstance(plain, list) and isinstance(original, list | tuple) and len(plain) == len(original):
        return [_sorted_like(p, o) for p, o in zip(plain, original, strict=True)]
    if isinstance(plain, dict) and isinstance(original, dict) and len(plain) == len(original):
        pairs = zip(plain.items(), original.values(), strict=True)
        return {name: _sorted_like(p, o) for (name, p), o in pairs}
    return plain
