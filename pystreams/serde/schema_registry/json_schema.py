"""JSON with a JSON Schema in the format of Confluent's serializers: ``0 | schema id | JSON``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, ClassVar, TypeVar, Unpack, cast, overload

import msgspec

from pystreams.errors import TopologyError
from pystreams.serde.schema_registry.base import (
    RegistrySerde,
    SchemaText,
    registered,
    schema_json,
    schema_text,
)
from pystreams.serde.schema_registry.clients import clients_module
from pystreams.serde.schema_registry.settings import Part, SchemaArguments, SchemaUse
from pystreams.serde.schemas.finding import Schema
from pystreams.serde.schemas.pydantic_types import typed_schema
from pystreams.serde.shapes import Shape, type_name
from pystreams.serde.structured import JsonSerde

T = TypeVar("T")


class JsonSchemaSerde(RegistrySerde[T]):
    """JSON whose schema is in a schema registry. The JSON is that of ``JsonSerde``.

    ``type_``: as for ``JsonSerde``. ``schema``: the JSON Schema as text, ``Path`` or dict; by default it is derived
    from the type, which then must have typed fields. Values are validated against the type when they are read;
    ``validate`` also validates them against the schema, in both directions, which is many times slower.

    The other arguments are as for ``AvroSerde``. Source: io.confluent.kafka.streams.serdes.json.KafkaJsonSchemaSerde.

    Raises ``TopologyError`` for a type without a schema or a malformed one, ``ConfigError`` if the extra
    ``json-schema`` is not installed.
    """

    module: ClassVar[str] = "json_schema"
    packages: ClassVar[tuple[str, ...]] = ("jsonschema",)

    @overload
    def __init__(
        self,
        type_: type[T],
        schema: str | Path | dict[str, Any] | None = None,
        *,
        validate: bool = False,
        references: Iterable[tuple[str, str, int]] = (),
        **arguments: Unpack[SchemaArguments],
    ) -> None: ...
    @overload
    def __init__(
        self: JsonSchemaSerde[Any],
        type_: Any,
        schema: str | Path | dict[str, Any] | None = None,
        *,
        validate: bool = False,
        references: Iterable[tuple[str, str, int]] = (),
        **arguments: Unpack[SchemaArguments],
    ) -> None: ...
    def __init__(
        self,
        type_: Any,
        schema: str | Path | dict[str, Any] | None = None,
        *,
        validate: bool = False,
        references: Iterable[tuple[str, str, int]] = (),
        **arguments: Unpack[SchemaArguments],
    ) -> None:
        use = SchemaUse.of("JsonSchemaSerde", arguments)
        text = _derived(type_) if schema is None else schema_text(schema)
        self._schema = SchemaText(text, "JSON", tuple(references))
        super().__init__(_title(text), use)
        self._json: JsonSerde[T] = JsonSerde(type_)
        self.type = type_
        self._always_long = validate

    def bytes_schema(self) -> Schema:
        checked = {"checked_against": json.loads(self._schema.text)} if self._always_long else {}
        return {
            "format": "json with a schema",
            **typed_schema(self.type),
            **checked,
            **registered(self._schema.text),
        }

    def __repr__(self) -> str:
        return f"JsonSchemaSerde({type_name(self.type)})"

    def _serializer(self, client: Any, settings: dict[str, Any]) -> Any:
        conf = {**settings, "validate": self._always_long}
        return clients_module("json_schema").JSONSerializer(
            self._schema.registered(), client, conf=conf, json_encode=msgspec.json.Encoder().encode
        )

    def _deserializer(self, client: Any, settings: dict[str, Any], rules: Any) -> Any:
        conf = {**settings, "validate": self._always_long}
        return clients_module("json_schema").JSONDeserializer(
            self._schema.registered(rules),
            schema_registry_client=client,
            conf=conf,
            json_decode=msgspec.json.decode,
        )

    def _plain(self, value: T) -> Any:
        return msgspec.json.decode(self._json.serializer("")(value))

    def _of_plain(self, plain: Any) -> T:
        return self._json.deserializer("")(msgspec.json.encode(plain))

    def _short_writer(self, client: Any, schema: Any, head: bytes, part: Part) -> Callable[[T], bytes]:
        write = self._json.key_serializer("") if part == "key" else self._json.serializer("")
        return lambda value: head + write(value)

    def _short_reader(self, client: Any, schema: Any, start: int) -> Callable[[bytes], T]:
        read = self._json._decode
        return lambda data: read(data[start:])


def _derived(type_: Any) -> str:
    """The schema that is derived from a type."""
    of_pydantic = Shape.of(type_).pydantic
    schema: dict[str, Any] = (
        sys.modules["pydantic"].TypeAdapter(type_).json_schema()
        if of_pydantic
        else msgspec.json.schema(type_)
    )
    if "$ref" not in schema and "properties" not in schema and type_ in (dict, list, Any, object):
        raise TopologyError(
            f"no JSON Schema can be derived from {type_name(type_)}",
            hint="give the schema, or a type that names its fields: a dataclass, msgspec.Struct, TypedDict or pydantic "
            "model",
        )
    return json.dumps(_with_its_fields(schema))


def _with_its_fields(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that only refers to a definition, with that definition's fields copied to its top, where registries and
    other clients look for the title."""
    referred = schema.get("$ref", "").rpartition("/")[2]
    definitions = dict(schema.get("$defs", {}))
    if not referred or '"#/$defs/' + referred + '"' in json.dumps(definitions):
        return schema
    top = definitions.pop(referred)
    return {**top, **({"$defs": definitions} if definitions else {})}


def _title(text: str) -> str | None:
    schema = schema_json(text)
    return cast("str | None", schema.get("title")) if isinstance(schema, dict) else None
