"""Protobuf messages, made without protoc: two files, the second of which imports the first."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto


def _file(name: str, *imports: str) -> descriptor_pb2.FileDescriptorProto:
    return descriptor_pb2.FileDescriptorProto(name=name, package="shop", syntax="proto3", dependency=imports)


def _field(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    kind: int,
    type_name: str | None = None,
    label: int = 1,
):
    number = len(message.field) + 1
    message.field.add(name=name, number=number, type=kind, type_name=type_name, label=label)


def _described() -> list[descriptor_pb2.FileDescriptorProto]:
    address = _file("shop/address.proto")
    city = address.message_type.add(name="Address")
    _field(city, "city", _FIELD.TYPE_STRING)

    orders = _file("shop/orders.proto", "shop/address.proto")
    first = orders.message_type.add(name="Customer")
    _field(first, "name", _FIELD.TYPE_STRING)
    order = orders.message_type.add(name="Order")
    _field(order, "id", _FIELD.TYPE_INT64)
    _field(order, "to", _FIELD.TYPE_MESSAGE, ".shop.Address")
    _field(order, "counts", _FIELD.TYPE_MESSAGE, ".shop.Order.CountsEntry", _FIELD.LABEL_REPEATED)
    entry = order.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    _field(entry, "key", _FIELD.TYPE_STRING)
    _field(entry, "value", _FIELD.TYPE_INT32)
    line = order.nested_type.add(name="Line")
    _field(line, "sku", _FIELD.TYPE_STRING)
    return [address, orders]


FILES = [file.SerializeToString() for file in _described()]
_pool = descriptor_pool.Default()
for _one in FILES:
    _pool.AddSerializedFile(_one)


def _message(name: str) -> type:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(name))


#: The first message of its file, the second, and one within it.
Customer, Order, Line = _message("shop.Customer"), _message("shop.Order"), _message("shop.Order.Line")
