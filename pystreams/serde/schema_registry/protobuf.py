"""Protobuf in the format of Confluent's serializers: ``0 | schema id | index of the message | Protobuf``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, Unpack, cast

from pystreams.errors import SerializationError, TopologyError
from pystreams.serde.schema_registry.base import RegistrySerde, registered
from pystreams.serde.schema_registry.clients import clients_module
from pystreams.serde.schema_registry.settings import Part, SchemaArguments, SchemaUse
from pystreams.serde.schemas.finding import Schema
from pystreams.serde.schemas.protobuf import message_schema
from pystreams.serde.varint import varint_at

T = TypeVar("T")


class ProtobufSerde(RegistrySerde[T]):
    """Messages of one Protobuf class, made by ``protoc``. The schema is that of the class's file; files that it imports
    are registered as references. Without a class, each message is read by the schema that it was written with, as a
    class made of that schema, and none can be written.

    The other arguments are as for ``AvroSerde``. Source: io.confluent.kafka.streams.serdes.protobuf.KafkaProtobufSerde.

    Raises ``TopologyError`` for a class of another kind, ``ConfigError`` if the extra ``protobuf`` is not installed.
    """

    module: ClassVar[str] = "protobuf"
    packages: ClassVar[tuple[str, ...]] = ("google.protobuf", "google.type")

    def __init__(
        self,
        message: type[T] | None = None,
        **arguments: Unpack[SchemaArguments],
    ) -> None:
        name = getattr(getattr(message, "DESCRIPTOR", None), "full_name", None)
        if message is not None and (name is None or not hasattr(message, "SerializeToString")):
            raise TopologyError(
                f"{message!r} is not a class of Protobuf messages", hint="give a class that protoc has made"
            )
        super().__init__(name, SchemaUse.of("ProtobufSerde", arguments))
        self.type: Any = message

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the description of the class, because the class need not be importable."""
        files = () if self.type is None else _files(self.type.DESCRIPTOR.file)
        return _again, (type(self), files, self.record_name, self._use)

    def bytes_schema(self) -> Schema:
        if self.type is None:
            return {"format": "protobuf", "type": None}
        descriptor = self.type.DESCRIPTOR
        files = registered(*_files(descriptor.file))
        return {"format": "protobuf", "type": message_schema(descriptor), **files}

    def __repr__(self) -> str:
        return f"ProtobufSerde({self.record_name or 'any message'})"

    def _serializer(self, client: Any, settings: dict[str, Any]) -> Any:
        if self.type is None:
            raise SerializationError(
                "a ProtobufSerde without a class can only read", hint="give it the class of the messages"
            )
        return clients_module("protobuf").ProtobufSerializer(self.type, client, conf=settings)

    def _deserializer(self, client: Any, settings: dict[str, Any], rules: Any) -> Any:
        if self.type is None:
            raise SerializationError(
                "a ProtobufSerde without a class cannot apply the rules of a schema",
                hint="give it the class of the messages",
            )
        return clients_module("protobuf").ProtobufDeserializer(
            self.type, settings, schema_registry_client=client
        )

    def _plain(self, value: T) -> Any:
        if self.type is not None and not isinstance(value, self.type):
            raise SerializationError(
                f"a value of type {type(value).__name__} cannot be serialized as {self!r}",
                hint="check that the step computes values of this type",
            )
        return value

    def _of_plain(self, plain: Any) -> T:
        return cast("T", plain)

    def _head_size(self, data: bytes, plain: Any) -> int:
        return len(data) - len(plain.SerializeToString())

    def _short_writer(self, client: Any, schema: Any, head: bytes, part: Part) -> Callable[[T], bytes]:
        message = self.type
        # The entries of maps have no order, but equal keys must have equal bytes.
        in_order = part == "key"

        def write(value: T) -> bytes:
            if value.__class__ is not message:
                self._plain(value)
            return head + cast("bytes", cast("Any", value).SerializeToString(deterministic=in_order))

        return write

    def _short_reader(self, client: Any, schema: Any, start: int) -> Callable[[bytes], T]:
        if self.type is None:
            return _any_message(client, schema, start)
        parse = self.type.FromString

        def read(data: bytes) -> T:
            # Nearly always it is the first message of its file, which a single 0 stands for.
            at = start + 1 if data[start : start + 1] == b"\x00" else _place(data, start)[1]
            return parse(data[at:])  # type: ignore[no-any-return]

        return read


def _any_message(client: Any, schema: Any, start: int) -> Callable[[bytes], Any]:
    """The reader that finds the class of each message by the message's index in its file."""
    from google.protobuf.message_factory import GetMessageClass

    file = _loaded(client, schema)
    classes: dict[tuple[int, ...], Any] = {}

    def read(data: bytes) -> Any:
        place, at = _place(data, start)
        message = classes.get(place)
        if message is None:
            first, *within = place
            found = list(file.message_types_by_name.values())[first]
            for number in within:
                found = found.nested_types[number]
            message = classes[place] = GetMessageClass(found)
        return message.FromString(data[at:])

    return read


def _loaded(client: Any, schema: Any) -> Any:
    """The description of a schema's file, in a pool of its own with all its imports."""
    from base64 import b64decode

    from google.protobuf import descriptor_pb2, descriptor_pool

    pool, known = descriptor_pool.DescriptorPool(), descriptor_pool.Default()

    def add(name: str | None, text: str, references: Any) -> str:
        file = descriptor_pb2.FileDescriptorProto.FromString(b64decode(text))
        file.name = name or file.name
        for reference in references or ():
            written = client.get_version(reference.subject, reference.version, True, "serialized").schema
            add(reference.name, written.schema_str, written.references)
        for needed in file.dependency:
            # The files that come with Protobuf are not in the registry.
            if needed.startswith(("google/", "confluent/")):
                _copy(known.FindFileByName(needed), pool)
        pool.Add(file)
        return str(file.name)

    return pool.FindFileByName(add(None, schema.schema_str, schema.references))


def _copy(file: Any, pool: Any) -> None:
    for needed in file.dependencies:
        _copy(needed, pool)
    pool.AddSerializedFile(file.serialized_pb)


def _place(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """The index of the message (its number in the file, then within that message, ...), and the position of its
    payload. Each number is a zig-zag varint after their count; a single 0 stands for the first message."""
    count, at = varint_at(data, start)
    place = []
    for _ in range(count):
        number, at = varint_at(data, at)
        place.append(number)
    return tuple(place) or (0,), at


def _files(file: Any) -> tuple[bytes, ...]:
    """The descriptions of a file and of all its imports, each after those that it needs."""
    found: dict[str, bytes] = {}

    def add(one: Any) -> None:
        if one.name not in found:
            for needed in one.dependencies:
                add(needed)
            found[one.name] = one.serialized_pb

    add(file)
    return tuple(found.values())


def _again(
    cls: type[ProtobufSerde[Any]], files: tuple[bytes, ...], name: str | None, use: SchemaUse
) -> ProtobufSerde[Any]:
    from google.protobuf import descriptor_pool, message_factory

    serde = cls.__new__(cls)
    RegistrySerde.__init__(serde, name, use)
    serde.type = None
    if name is not None:
        pool = descriptor_pool.Default()
        try:
            descriptor = pool.FindMessageTypeByName(name)
        except KeyError:
            for file in files:
                pool.AddSerializedFile(file)
            descriptor = pool.FindMessageTypeByName(name)
        serde.type = message_factory.GetMessageClass(descriptor)
    return serde
