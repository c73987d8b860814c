"""Protobuf messages: their schemas from descriptors, and how messages of one schema are read by another.

Fields are identified by their numbers. A reader skips fields that it does not have, and fields whose wire type differs.
Source: https://protobuf.dev/programming-guides/proto3/#updating.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pystreams.serde.schemas.finding import Effect, Finding, Schema, fails, loses, reads_on
from pystreams.serde.schemas.wording import listed, shown

#: Types with the same wire type, and for each those that can read all its values.
_VARINTS = ("int32", "int64", "uint32", "uint64", "bool", "enum")
_ALIKE = (_VARINTS, ("sint32", "sint64"), ("fixed32", "sfixed32"), ("fixed64", "sfixed64"))
_TAKES_ALL = {
    "int32": ("int64", "enum"),
    "uint32": ("int64", "uint64"),
    "sint32": ("sint64",),
    "bool": ("int32", "int64", "uint32", "uint64", "enum"),
    "enum": ("int32", "int64"),
    "string": ("bytes",),
    "message": ("bytes",),
}
_REPEATED, _REQUIRED = 3, 2


def message_schema(descriptor: Any) -> Schema:
    """The schema of a message, made of its descriptor. It does not contain names of messages."""
    messages: list[Schema] = []
    numbers: dict[str, int] = {}

    def number_of(one: Any) -> int:
        if one.full_name not in numbers:
            numbers[one.full_name] = len(messages)
            messages.append({})
            messages[numbers[one.full_name]] = {"fields": _fields(one, number_of)}
        return numbers[one.full_name]

    return {"message": number_of(descriptor), "messages": messages}


def _fields(descriptor: Any, number_of: Any) -> list[Schema]:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

    proto = DescriptorProto()
    descriptor.CopyToProto(proto)
    found = []
    for proto_field in proto.field:
        field = descriptor.fields_by_name[proto_field.name]
        kind = FieldDescriptorProto.Type.Name(proto_field.type).removeprefix("TYPE_").lower()
        oneof = field.containing_oneof
        values = {value.name: value.number for value in field.enum_type.values} if field.enum_type else {}
        found.append(
            {
                "number": proto_field.number,
                "name": proto_field.name,
                "type": kind,
                **({"repeated": True} if proto_field.label == _REPEATED else {}),
                **({"required": True} if proto_field.label == _REQUIRED else {}),
                **({"default": proto_field.default_value} if proto_field.default_value else {}),
                **({"one_of": oneof.name} if oneof is not None and not proto_field.proto3_optional else {}),
                **({"message": number_of(field.message_type)} if field.message_type else {}),
                **({"values": values} if values else {}),
                **({"closed": True} if values and getattr(field.enum_type, "is_closed", False) else {}),
            }
        )
    return sorted(found, key=lambda one: one["number"])


def compare_protobuf(was: Schema, now: Schema) -> list[Finding]:
    """The effect on messages that one ``ProtobufSerde`` wrote and another reads."""
    if was["type"] is None or now["type"] is None:
        return fails("has a class in one version only: messages may be of any class")
    return _Messages(was["type"]["messages"], now["type"]["messages"]).of(
        was["type"]["message"], now["type"]["message"]
    )


class _Messages:
    def __init__(self, was: Sequence[Schema], now: Sequence[Schema]) -> None:
        self._was, self._now = was, now
        self._known: dict[tuple[int, int], list[Finding]] = {}

    def of(self, old: int, new: int) -> list[Finding]:
        """The findings for two messages, given by their indexes in the two schemas."""
        if (old, new) not in self._known:
            self._known[old, new] = []
            self._known[old, new] = self._compared(self._was[old], self._now[new])
        return self._known[old, new]

    def _compared(self, old: Schema, new: Schema) -> list[Finding]:
        before, after = ({field["number"]: field for field in one["fields"]} for one in (old, new))
        found: list[Finding] = []
        for number, field in before.items():
            if number in after:
                found += [one.below(field["name"]) for one in self._field(field, after[number], old, new)]
            else:
                found.append(Finding(field["name"], Effect.LOSES, _gone(field, new)))
        for number, field in after.items():
            if number not in before:
                found.append(Finding(field["name"], Effect.READS_ON, f"is new, with the number {number}"))
        return found

    def _field(self, old: Schema, new: Schema, whole: Schema, now: Schema) -> list[Finding]:
        found = self._type(old, new)
        if old.get("repeated") and not new.get("repeated"):
            found = [*found, *loses("was repeated: only the last one is read")]
        elif new.get("repeated") and not old.get("repeated"):
            found = [*found, *reads_on("is repeated now: the old value is its only element")]
        if old["name"] != new["name"]:
            moved = any(field["name"] == new["name"] for field in whole["fields"])
            kept = any(field["name"] == old["name"] for field in now["fields"])
            change = f"is read as {new['name']}, which has its number {new['number']}"
            found = [*found, *(loses(change) if moved or kept else reads_on(change, rewrites=False))]
        if old.get("default") != new.get("default"):
            defaults = " becomes ".join(shown(one.get("default", "")) for one in (old, new))
            found = [
                *found,
                *reads_on(f"has another default if it is not set: {defaults}", rewrites=False),
            ]
        if new.get("one_of") and not old.get("one_of"):
            found = [*found, *loses(f"is one of {new['one_of']} now: only the last of several is read")]
        return found

    def _type(self, old: Schema, new: Schema) -> list[Finding]:
        was, now = old["type"], new["type"]
        change = f"was {was}, is now {now}"
        if (was, now) == ("message", "message"):
            return self.of(old["message"], new["message"])
        if (was, now) == ("enum", "enum"):
            return _enums(old, new)
        if was == now:
            return []
        if now in _TAKES_ALL.get(was, ()) and not new.get("closed"):
            return reads_on(change)
        if any(was in kinds and now in kinds for kinds in _ALIKE):
            return loses(f"{change}: some values are read as others")
        if {was, now} <= {"string", "bytes", "message"}:
            return fails(change)
        return loses(f"{change}: old values are skipped")


def _gone(field: Schema, new: Schema) -> str:
    moved = next((one for one in new["fields"] if one["name"] == field["name"]), None)
    return "is gone" if moved is None else f"has the number {moved['number']} now, it had {field['number']}"


def _enums(old: Schema, new: Schema) -> list[Finding]:
    numbers = set(new["values"].values())
    missing = [name for name, number in old["values"].items() if number not in numbers]
    if missing:
        change = f"could be {listed(missing)}, which has no name any more"
        return loses(change) if new.get("closed") else reads_on(change, rewrites=False)
    return (
        [] if old["values"] == new["values"] else reads_on("has other names for its values", rewrites=False)
    )
