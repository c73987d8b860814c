"""Formats for ``produce`` and ``consume`` of records whose schemas are in a registry: JSON, in both directions."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final

import msgspec

from pystreams.cli.records.format import Format
from pystreams.errors import ConfigError, SerializationError
from pystreams.serde.base import AnySerde


def schema_format(name: str, topic: str, part: str) -> Format:
    """The format of a topic's keys or values (``part``), with the registry that the environment names. Lines are
    written with the newest schema of their subject.

    Raises ``ConfigError`` if no registry is named, or the extra is not installed.
    """
    serde = _SERDES[name]().configured(_settings())
    write = serde.key_serializer(topic) if part == "key" else serde.serializer(topic)
    read, as_text = serde.deserializer(topic), _message_text if name == "protobuf" else _json_text

    def read_line(text: str) -> bytes:
        if name == "protobuf":
            raise ConfigError("Lines cannot be written as protobuf", hint="write them from an application")
        return write(json.loads(text))

    def show(data: bytes) -> str:
        try:
            return as_text(read(data))
        except SerializationError as error:
            raise ValueError(error.why) from None

    return Format(name, read_line, show)


def _settings() -> dict[str, str]:
    from pystreams.config import merge_settings, settings_from_environment

    settings: dict[str, str] = merge_settings(settings_from_environment(os.environ)).get("serde_settings", {})
    if "schema.registry.url" not in settings:
        raise ConfigError(
            "No schema registry is configured",
            hint="set its URL in the environment: PYSTREAMS_SCHEMA_REGISTRY_URL=http://localhost:8081",
        )
    return settings


def _avro() -> AnySerde:
    from pystreams.serde import AvroSerde

    return AvroSerde(use_latest_version=True)


def _json_schema() -> AnySerde:
    from pystreams.serde import JsonSchemaSerde

    return JsonSchemaSerde(Any, {}, use_latest_version=True)


def _protobuf() -> AnySerde:
    from pystreams.serde import ProtobufSerde

    return ProtobufSerde[Any]()


def _json_text(value: Any) -> str:
    """JSON text as ``json.dumps`` writes it, with support for dates and decimals."""
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False)


def _message_text(message: Any) -> str:
    from google.protobuf.json_format import MessageToDict

    return json.dumps(MessageToDict(message, preserving_proto_field_name=True), ensure_ascii=False)


_SERDES: Final[dict[str, Callable[[], AnySerde]]] = {
    "avro": _avro,
    "json_schema": _json_schema,
    "protobuf": _protobuf,
}
