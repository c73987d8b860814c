"""Avro in the format of Confluent's serializers: ``0 | schema id | Avro binary``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, TypeVar, Unpack, cast, overload

from pystreams.errors import SerializationError, TopologyError
from pystreams.serde.schema_registry.base import (
    RegistrySerde,
    SchemaText,
    registered,
    schema_json,
    schema_text,
)
from pystreams.serde.schema_registry.clients import clients_module
from pystreams.serde.schema_registry.plain import plain_codec
from pystreams.serde.schema_registry.settings import Part, SchemaArguments, SchemaUse
from pystreams.serde.schemas.finding import Schema
from pystreams.serde.schemas.pydantic_types import typed_schema
from pystreams.serde.shapes import type_name

T = TypeVar("T")


class AvroSerde(RegistrySerde[T]):
    """Avro records whose schemas are in a schema registry.

    ``schema`` is the schema to write with; records with other versions are converted to it when they are read. It is a
    text, a ``Path`` to an ``.avsc`` file, or parsed JSON. Without one, each record is read by the schema that it was
    written with, and none can be written, unless ``use_latest_version`` takes the subject's newest.

    ``type_``: the type of values: dict (default, or the type that a schema that is not a record stands for), or a
    dataclass, ``msgspec.Struct``, ``TypedDict`` or pydantic model with the schema's fields.

    ``references`` are schemas to which this one refers: (name, subject, version). The other arguments override the
    application's settings: see ``SchemaUse``. Source: io.confluent.kafka.streams.serdes.avro.{GenericAvroSerde,
    SpecificAvroSerde}.

    Raises ``TopologyError`` for a malformed schema, ``ConfigError`` if the extra ``avro`` is not installed.
    """

    module: ClassVar[str] = "avro"
    packages: ClassVar[tuple[str, ...]] = ("fastavro", "avro")

    @overload
    def __init__(
        self: AvroSerde[Any],
        schema: str | Path | dict[str, Any] | list[Any] | None = None,
        type_: None = None,
        *,
        references: Iterable[tuple[str, str, int]] = (),
        **arguments: Unpack[SchemaArguments],
    ) -> None: ...
    @overload
    def __init__(
        self,
        schema: str | Path | dict[str, Any] | list[Any] | None,
        type_: type[T],
        *,
        references: Iterable[tuple[str, str, int]] = (),
        **arguments: Unpack[SchemaArguments],
    ) -> None: ...
    def __init__(
        self,
        schema: str | Path | dict[str, Any] | list[Any] | None = None,
        type_: Any = None,
        *,
        references: Iterable[tuple[str, str, int]] = (),
        **arguments: Unpack[SchemaArguments],
    ) -> None:
        use = SchemaUse.of("AvroSerde", arguments)
        self._schema = None if schema is None else SchemaText(_text(schema), "AVRO", tuple(references))
        super().__init__(None if self._schema is None else _name(self._schema.text), use)
        if self._schema is not None and not self._schema.references:
            _parse(self._schema.text, {})
        self.type = dict if type_ is None else type_
        self._to_plain, self._from_plain = plain_codec(self.type)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments of the codecs, because codecs cannot be pickled."""
        return _again, (type(self), self.record_name, self._use, self._schema, self.type)

    def bytes_schema(self) -> Schema:
        from pystreams.serde.schemas.avro import normal_form

        given = self._schema
        return {
            "format": "avro",
            "schema": None if given is None else normal_form(schema_json(given.text)),
            "as": None if self.type in (dict, list, Any, object) else typed_schema(self.type)["type"],
            **({"references": [list(one) for one in given.references]} if given and given.references else {}),
            **({} if given is None else registered(given.text)),
        }

    def __repr__(self) -> str:
        name = self.record_name or ("any schema" if self._schema is None else "a schema without a name")
        return f"AvroSerde({name}{'' if self.type is dict else f' as {type_name(self.type)}'})"

    def _serializer(self, client: Any, settings: dict[str, Any]) -> Any:
        if self._schema is None and not settings["use.latest.version"]:
            raise SerializationError(
                "an AvroSerde without a schema can only read",
                hint="give it the schema to write with, or use_latest_version=True to write with the subject's newest",
            )
        return clients_module("avro").AvroSerializer(
            client, None if self._schema is None else self._schema.registered(), conf=settings
        )

    def _deserializer(self, client: Any, settings: dict[str, Any], rules: Any) -> Any:
        reader = None if self._schema is None else self._schema.registered(rules)
        return clients_module("avro").AvroDeserializer(client, reader, conf=settings)

    def _plain(self, value: T) -> Any:
        return value if self._to_plain is None else self._to_plain(value)

    def _of_plain(self, plain: Any) -> T:
        return cast("T", plain) if self._from_plain is None else cast("T", self._from_plain(plain))

    def _short_writer(self, client: Any, schema: Any, head: bytes, part: Part) -> Callable[[T], bytes]:
        from fastavro import schemaless_writer

        parsed = _parsed(
            client, schema if self._schema is None or schema is not None else self._schema.registered()
        )
        to_plain = self._to_plain
        if _is_bytes(parsed):
            return lambda value: head + cast("bytes", value)
        in_order = part == "key" and _holds_maps(parsed)

        def write(value: T) -> bytes:
            out = BytesIO()
            out.write(head)
            plain = value if to_plain is None else to_plain(value)
            schemaless_writer(out, parsed, _in_order(plain) if in_order else plain)
            return out.getvalue()

        return write

    def _short_reader(self, client: Any, schema: Any, start: int) -> Callable[[bytes], T]:
        from fastavro import schemaless_reader

        written = _parsed(client, schema)
        own = written if self._schema is None else _parsed(client, self._schema.registered())
        from_plain = self._from_plain
        if _is_bytes(written):
            return lambda data: self._of_plain(data[start:])
        # With both schemas, fastavro compares them for each record.
        wanted = None if own == written else own

        def read(data: bytes) -> T:
            plain: Any = schemaless_reader(BytesIO(data[start:]), written, wanted)
            return plain if from_plain is None else from_plain(plain)  # type: ignore[no-any-return]

        return read


def _again(
    cls: type[AvroSerde[Any]], name: str | None, use: SchemaUse, schema: SchemaText | None, type_: Any
) -> AvroSerde[Any]:
    serde = cls.__new__(cls)
    RegistrySerde.__init__(serde, name, use)
    serde._schema = schema
    serde.type = type_
    serde._to_plain, serde._from_plain = plain_codec(type_)
    return serde


def _text(schema: str | Path | dict[str, Any] | list[Any]) -> str:
    text = schema_text(schema)
    # The bare name of a primitive is a common way to write its schema.
    loaded = text.strip() if text.strip() in _PRIMITIVES else schema_json(text)
    # The clients accept a primitive only in this form.
    return json.dumps({"type": loaded}) if isinstance(loaded, str) else text


_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def _name(text: str) -> str | None:
    """The full name of the schema's record; None if the schema has no name."""
    schema = schema_json(text)
    if not isinstance(schema, dict) or "name" not in schema:
        return None
    name, namespace = schema["name"], schema.get("namespace")
    return name if not namespace or "." in name else f"{namespace}.{name}"


def _parse(text: str, named: dict[str, Any]) -> Any:
    from fastavro import parse_schema
    from fastavro.schema import SchemaParseException, UnknownType

    try:
        return parse_schema(schema_json(text), named)
    except (SchemaParseException, UnknownType, KeyError, TypeError, ValueError) as error:
        raise TopologyError(
            "a schema is not a valid Avro schema", why=f"{type(error).__name__}: {error}"
        ) from None


def _parsed(client: Any, schema: Any) -> Any:
    """A schema of the registry, with all schemas to which it refers, for fastavro."""
    named: dict[str, Any] = {}
    seen: set[tuple[str, int]] = set()

    def load(schema: Any) -> Any:
        for reference in schema.references or ():
            if (reference.subject, reference.version) not in seen:
                seen.add((reference.subject, reference.version))
                load(client.get_version(reference.subject, reference.version, True).schema)
        return _parse(schema.schema_str, named)

    return load(schema)


def _is_bytes(schema: Any) -> bool:
    """Whether records are plain bytes: Confluent writes a schema of bytes alone without a length."""
    return schema == "bytes" or (
        isinstance(schema, dict) and schema.get("type") == "bytes" and "logicalType" not in schema
    )


def _holds_maps(schema: Any) -> bool:
    if isinstance(schema, dict):
        return schema.get("type") == "map" or any(map(_holds_maps, schema.values()))
    return isinstance(schema, list) and any(map(_holds_maps, schema))


def _in_order(plain: Any) -> Any:
    """A key with the entries of its maps sorted, because equal keys must have equal bytes."""
    if isinstance(plain, dict):
        return {name: _in_order(plain[name]) for name in sorted(plain)}
    if isinstance(plain, list):
        return [_in_order(part) for part in plain]
    return plain
