"""The types of Protobuf's messages, by their descriptors. Protobuf is imported when there is a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC
from typing import Any, Final

import pyarrow as pa

from pystreams.backfill.columns.typed import MOMENT, Typed, list_of, mapping_of, struct_of

#: By the name of a field's type. A uint64 does not fit into 64 bits with a sign.
_SCALARS: Final[Mapping[str, Typed]] = {
    "double": Typed(pa.float64()),
    "float": Typed(pa.float32()),
    "bool": Typed(pa.bool_()),
    "string": Typed(pa.string()),
    "bytes": Typed(pa.binary()),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), Typed(pa.int32())),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), Typed(pa.int64())),
    **dict.fromkeys(("uint64", "fixed64"), Typed(pa.decimal128(20, 0))),
}

#: Messages that stand for a single value.
_WELL_KNOWN: Final[Mapping[str, Typed]] = {
    "google.protobuf.Timestamp": Typed(MOMENT, lambda message: message.ToDatetime(tzinfo=UTC)),
    "google.protobuf.Duration": Typed(pa.duration("us"), lambda message: message.ToTimedelta()),
}
_WRAPPERS: Final = "google/protobuf/wrappers.proto"

#: Messages that may hold values of any type.
_ANYTHING: Final = (
    "google.protobuf.Struct",
    "google.protobuf.Value",
    "google.protobuf.ListValue",
    "google.protobuf.Any",
)


def _text(message: Any) -> str:
    """A message in Protobuf's own form of JSON."""
    from google.protobuf.json_format import MessageToJson

    return str(MessageToJson(message, indent=None))


#: The type of messages whose class is not known, of those that may hold anything, and of one within itself.
MESSAGE_TEXT: Final = Typed(pa.string(), _text)


def type_of_message(descriptor: Any) -> Typed:
    """The type of the messages of one class. A field is null if it is not set, and its type knows that."""
    return _message(descriptor, ())


def _message(descriptor: Any, around: tuple[str, ...]) -> Typed:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

    name, fields = descriptor.full_name, list(descriptor.fields)
    if name in _WELL_KNOWN:
        return _WELL_KNOWN[name]
    if name in around or name in _ANYTHING or not fields:
        return MESSAGE_TEXT
    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    repeated = {one.name: one.label == FieldDescriptorProto.LABEL_REPEATED for one in proto.field}
    if descriptor.file.name == _WRAPPERS:
        read = _reader(fields[0], repeated=False)
        return _single(fields[0], ())._replace(fit=read)
    parts = [_field(field, repeated[field.name], (*around, name)) for field in fields]
    readers = [_reader(field, repeated[field.name]) for field in fields]
    return struct_of(
        [field.name for field in fields], parts, lambda message: [read(message) for read in readers]
    )


def _field(field: Any, repeated: bool, around: tuple[str, ...]) -> Typed:
    if not repeated:
        return _single(field, around)
    if field.message_type is None or not field.message_type.GetOptions().map_entry:
        return list_of(_single(field, around))
    key, value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
    return mapping_of(_single(key, around), _single(value, around))


def _single(field: Any, around: tuple[str, ...]) -> Typed:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    if field.message_type is not None:
        return _message(field.message_type, around)
    if field.enum_type is not None:
        names = {value.number: value.name for value in field.enum_type.values}
        return Typed(pa.string(), lambda number: names.get(number, str(number)))
    return _SCALARS[FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()]


def _reader(field: Any, repeated: bool) -> Callable[[Any], Any]:
    name = field.name
    if repeated or not field.has_presence:
        return lambda message: getattr(message, name)
    return lambda message: getattr(message, name) if message.HasField(name) else None
