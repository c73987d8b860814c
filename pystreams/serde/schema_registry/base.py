"""The common base of the three formats. It looks up a topic's schemas once, and then uses fast codecs.

A record is ``0 | schema id (int32) | payload``. The first record of a topic, and of each schema id that is read, goes
through confluent-kafka's own serializers and client, which register and fetch schemas. Further records use only the
codec, unless the schema has rules (encryption, migrations, checks), which only confluent-kafka's serializers apply.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from pystreams.errors import ConfigError, SerializationError, StreamsError, TopologyError
from pystreams.serde.base import Serde
from pystreams.serde.schema_registry.clients import (
    check_installed,
    client_of,
    clients_module,
    registry_errors,
)
from pystreams.serde.schema_registry.settings import Part, SchemaRegistry, SchemaUse
from pystreams.serde.schemas.finding import Schema

T = TypeVar("T")

_ID_BYTES = 5
_GUID_BYTES = 17
#: How long an unknown id is remembered before the registry is asked again.
_UNKNOWN_S = 10.0


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema as the registry stores it. ``references`` are schemas to which it refers: name, subject, version."""

    text: str
    kind: str
    references: tuple[tuple[str, str, int], ...] = ()

    def registered(self, rules: Any = None) -> Any:
        """The schema as confluent-kafka's ``Schema``, with the rules of another."""
        registry = clients_module("")
        references = [registry.SchemaReference(*reference) for reference in self.references]
        return registry.Schema(self.text, self.kind, references, rule_set=rules)


def schema_text(schema: str | Path | dict[str, Any] | list[Any]) -> str:
    """A schema that is given as text, as the file that contains it, or as parsed JSON. Raises ``TopologyError`` for a
    file that cannot be read."""
    if isinstance(schema, str):
        return schema
    if not isinstance(schema, Path):
        return json.dumps(schema)
    try:
        return schema.read_text(encoding="utf-8")
    except OSError as error:
        raise TopologyError(f"{schema} does not contain a schema", why=str(error)) from None


def schema_json(text: str) -> Any:
    """The text of a schema, parsed. Raises ``TopologyError``."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise TopologyError(
            "a schema is not valid JSON", why=str(error), hint="to give a file, give its pathlib.Path"
        ) from None


def registered(*texts: str | bytes) -> Schema:
    """The part of a serde's schema that identifies registered schemas by their text. A record begins with its schema's
    id, so a different text, even with the same fields, changes a key's bytes."""
    from hashlib import sha256

    digest = sha256()
    for text in texts:
        digest.update(text.encode() if isinstance(text, str) else text)
    return {"registered": digest.hexdigest()[:16]}


class RegistrySerde(Serde[T]):
    """Base class of serdes that use a schema registry."""

    #: The module of confluent-kafka for the format, and the packages that it needs.
    module: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]

    def __init__(self, name: str | None, use: SchemaUse) -> None:
        check_installed(self.module, (*self.packages, "authlib", "httpx2"))
        #: The record's name, for subject name strategies that use it.
        self.record_name = name
        self._use = use

    def configured(self, settings: Mapping[str, str]) -> Serde[T]:
        use = self._use.or_of(settings)
        if use is self._use:
            return self
        configured = copy(self)
        configured._use = use
        return configured

    def serializer(self, topic: str) -> Callable[[T], bytes]:
        return self._writer(topic, "value")

    def key_serializer(self, topic: str) -> Callable[[T], bytes]:
        return self._writer(topic, "key")

    def deserializer(self, topic: str) -> Callable[[bytes], T]:
        return _Reading(self, topic).read

    def header_deserializer(self, topic: str, part: str) -> tuple[str, Callable[[bytes, bytes], T]]:
        """A header may contain the schema instead of the first bytes: ``1 | GUID``, in Protobuf with the message's
        index. Source: io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer.
        """
        read = self.deserializer(topic)
        return f"__{part}_schema_id", lambda data, schema: read(schema + data)

    # To be implemented by each format

    @abstractmethod
    def _serializer(self, client: Any, settings: dict[str, Any]) -> Any:
        """confluent-kafka's serializer."""

    @abstractmethod
    def _deserializer(self, client: Any, settings: dict[str, Any], rules: Any) -> Any:
        """confluent-kafka's deserializer, for records of a schema with these rules."""

    @abstractmethod
    def _plain(self, value: T) -> Any:
        """The value in the form that confluent-kafka's serializer takes."""

    @abstractmethod
    def _of_plain(self, plain: Any) -> T:
        """The value for the result of confluent-kafka's deserializer."""

    @abstractmethod
    def _short_writer(self, client: Any, schema: Any, head: bytes, part: Part) -> Callable[[T], bytes]:
        """The fast writer of records that begin with ``head``. ``schema`` is the subject's newest; None: the serde's
        own."""

    @abstractmethod
    def _short_reader(self, client: Any, schema: Any, start: int) -> Callable[[bytes], T]:
        """The fast reader of records of one schema, whose payload begins at ``start``."""

    def _head_size(self, data: bytes, plain: Any) -> int:
        """The number of bytes before the payload, which is that of ``plain``."""
        return _ID_BYTES

    #: Whether every record must go through confluent-kafka's own serializers.
    _always_long = False

    # Writing

    def registry(self) -> SchemaRegistry:
        """The serde's registry. Raises ``ConfigError`` if none is set."""
        registry = self._use.registry
        if registry is None:
            raise ConfigError(
                f"{self!r} has no schema registry",
                hint="set it for the whole application (schema_registry_url='http://localhost:8081'), "
                "or for the serde (registry=)",
            )
        return registry

    def _writer(self, topic: str, part: Part) -> Callable[[T], bytes]:
        registry = self.registry()
        write: Callable[[T], bytes] | None = None

        def write_record(value: T) -> bytes:
            nonlocal write
            try:
                if write is None:
                    write = self._learn_to_write(registry, topic, part, value)
                return write(value)
            except StreamsError:
                raise
            except Exception as error:
                raise SerializationError(
                    f"a value of type {type(value).__name__} cannot be serialized as {self!r}",
                    where=f"topic {topic}",
                    why=f"{type(error).__name__}: {error}",
                    hint="check that the value fits its schema",
                ) from error

        return write_record

    def _learn_to_write(
        self, registry: SchemaRegistry, topic: str, part: Part, value: T
    ) -> Callable[[T], bytes]:
        client = client_of(registry)
        context = _context(topic, part)
        settings, plain = self._settings_for_writing(part), self._plain(value)
        with registry_errors(registry, f"for the {part}s of topic {topic}"):
            serializer = self._serializer(client, settings)
            data = serializer(plain, context)
            newest = settings["use.latest.version"]
            latest = client.get_latest_version(self._subject(topic, part)) if newest else None
        schema = None if latest is None else latest.schema
        if self._always_long or (schema is not None and (_has_rules(schema) or _may_change(registry))):
            return self._long_writer(registry, serializer, topic, part)
        return self._short_writer(client, schema, data[: self._head_size(data, plain)], part)

    def _long_writer(
        self, registry: SchemaRegistry, serializer: Any, topic: str, part: Part
    ) -> Callable[[T], bytes]:
        context, what = _context(topic, part), f"for the {part}s of topic {topic}"

        def write(value: T) -> bytes:
            plain = self._plain(value)
            with registry_errors(registry, what):
                data: bytes = serializer(plain, context)
            return data

        return write

    def _settings_for_writing(self, part: Part) -> dict[str, Any]:
        """The settings of confluent-kafka's serializer."""
        use = self._use
        newest = bool(use.use_latest_version)

        def subject(context: Any, _: str | None) -> str:
            return self._subject(context.topic, part)

        return {
            "auto.register.schemas": use.auto_register is not False and not newest,
            "normalize.schemas": bool(use.normalize),
            "use.latest.version": newest,
            "subject.name.strategy": subject,
        }

    def _subject(self, topic: str, part: Part) -> str:
        """Source: TopicNameStrategy, RecordNameStrategy, TopicRecordNameStrategy."""
        by = (self._use.key_subject if part == "key" else self._use.value_subject) or "topic"
        name = self.record_name
        if callable(by):
            return by(topic, part, name)
        if by == "topic":
            return f"{topic}-{part}"
        if name is None:
            raise ConfigError(
                f"the subject of {self!r} cannot be named after its record",
                where=f"topic {topic}",
                why="its schema has no name",
                hint="name subjects after the topic, or give the schema a name (in JSON Schema: a title)",
            )
        return name if by == "record" else f"{topic}-{name}"


class _Reading(Serde[T]):
    """Deserializes a topic's records, each by the schema that it names."""

    def __init__(self, serde: RegistrySerde[T], topic: str) -> None:
        self._serde = serde
        self._topic = topic
        self._registry = serde.registry()
        self._readers: dict[bytes, Callable[[bytes], T]] = {}
        #: By unknown id: the time after which the registry is asked again, and its last answer.
        self._unknown: dict[bytes, tuple[float, StreamsError]] = {}
        self.read = self._make_read()

    def _make_read(self) -> Callable[[bytes], T]:
        readers, learn = self._readers, self._learn

        def read_record(data: bytes) -> T:
            try:
                return (readers.get(data[:_ID_BYTES]) or learn(data))(data)
            except StreamsError:
                raise
            except Exception as error:
                raise SerializationError(
                    f"{len(data)} bytes could not be deserialized as {self._serde!r}",
                    where=f"topic {self._topic}",
                    why=f"{type(error).__name__}: {error}",
                    hint="check that the record was written with the schema that it names, and that the serde's "
                    "own schema is compatible with it",
                ) from error

        return read_record

    def _learn(self, data: bytes) -> Callable[[bytes], T]:
        """The reader of records that begin with the same schema id as this one."""
        if data[:1] == b"\x01" and len(data) >= _GUID_BYTES:
            head = data[:_GUID_BYTES]
            return self._readers.get(head) or self._learn_head(head)
        if data[:1] != b"\x00" or len(data) < _ID_BYTES:
            raise SerializationError(
                f"a record does not begin like a record of {self._serde!r}",
                where=f"topic {self._topic}",
                why="it should begin with the byte 0 and the schema id (4 bytes), but "
                + (
                    f"it begins with {data[0]}"
                    if data[:1] != b"\x00" and data
                    else f"it has {len(data)} bytes"
                ),
                hint="check that a serializer for a schema registry wrote it",
            )
        return self._learn_head(data[:_ID_BYTES])

    def _learn_head(self, head: bytes) -> Callable[[bytes], T]:
        until, said = self._unknown.get(head, (0.0, None))
        if said is not None and monotonic() < until:
            raise said
        client = client_of(self._registry)
        try:
            with registry_errors(self._registry, f"topic {self._topic}", reading=True):
                schema = _schema_of(client, head, self._serde.module)
                if self._serde._always_long or _has_rules(schema):
                    reader = self._long_reader(client, schema.rule_set)
                else:
                    reader = self._serde._short_reader(client, schema, len(head))
        except SerializationError as error:
            self._unknown[head] = monotonic() + _UNKNOWN_S, error
            raise
        self._readers[head] = reader
        return reader

    def _long_reader(self, client: Any, rules: Any) -> Callable[[bytes], T]:
        serde = self._serde
        subject = serde._settings_for_writing("value")["subject.name.strategy"]
        deserializer = serde._deserializer(client, {"subject.name.strategy": subject}, rules)
        context = _context(self._topic, "value")

        def read(data: bytes) -> T:
            with registry_errors(self._registry, f"topic {self._topic}", reading=True):
                plain = deserializer(data, context)
            return serde._of_plain(plain)

        return read


def _schema_of(client: Any, head: bytes, module: str) -> Any:
    # The text of a Protobuf schema is its serialized descriptor, not its source.
    form = "serialized" if module == "protobuf" else None
    if len(head) == _GUID_BYTES:
        return client.get_schema_by_guid(str(UUID(bytes=head[1:])), fmt=form)
    return client.get_schema(int.from_bytes(head[1:], "big"), fmt=form)


def _context(topic: str, part: Part) -> Any:
    from confluent_kafka.serialization import MessageField, SerializationContext

    return SerializationContext(topic, MessageField(part))


def _has_rules(schema: Any) -> bool:
    return bool(schema.rule_set)


def _may_change(registry: SchemaRegistry) -> bool:
    """Whether the client asks for the newest version again from time to time."""
    return "cache.latest.ttl.sec" in registry.settings
