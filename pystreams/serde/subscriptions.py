"""The messages between the two sides of a foreign-key join, in Java's bytes.

Source: org.apache.kafka.streams.kstream.internals.foreignkeyjoin.{SubscriptionWrapper, SubscriptionResponseWrapper,
CombinedKeySchema}.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final, NamedTuple

from mmh3 import mmh3_x64_128_digest

from pystreams.errors import SerializationError
from pystreams.serde.base import AnySerde, Serde, schema_of
from pystreams.serde.schemas.finding import Schema

_HASH_BYTES: Final = 16
_HASH_SEED: Final = 104729
_NO_HASH: Final = 0x80
_VERSION: Final = 0x7F
_INT32: Final = struct.Struct(">i")

#: The version that is written. Version 0 has no partition, and can still be read.
SUBSCRIPTION_VERSION: Final = 1
RESPONSE_VERSION: Final = 0


class Instruction(IntEnum):
    """The action of the right side for a subscription."""

    #: The row no longer refers to this key; do not answer, because another subscription of the row gets an answer.
    DELETE_KEY_NO_PROPAGATE = 0
    #: The row no longer refers to this key; answer with null.
    DELETE_KEY_AND_PROPAGATE = 1
    #: Answer, with null if there is no row with this key.
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    #: Answer only if there is a row with this key.
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3


class Subscription(NamedTuple):
    """The message of a left row to the right side. ``hash`` is that of the row's value, None if the row is deleted;
    ``primary_key`` is its key's bytes; ``primary_partition`` is its partition, None in version 0."""

    hash: bytes | None
    instruction: Instruction
    primary_key: bytes
    primary_partition: int | None
    version: int = SUBSCRIPTION_VERSION


class Response(NamedTuple):
    """The answer: the hash of the row that asked, the value of the row to which it refers, and the partition of the row
    that asked, which is not serialized."""

    hash: bytes | None
    value: Any
    primary_partition: int | None = None


def value_hash(value: bytes) -> bytes:
    """The hash (16 bytes) by which a row recognizes the answer to its current value."""
    digest = mmh3_x64_128_digest(value, _HASH_SEED)
    # Two 64-bit numbers, which Java writes in big-endian order.
    return digest[7::-1] + digest[:7:-1]


def combined_key(foreign_key: bytes, primary_key: bytes) -> bytes:
    """The key of a subscription in its store. With an empty ``primary_key`` it is the common prefix of all
    subscriptions to one foreign key."""
    return _INT32.pack(len(foreign_key)) + foreign_key + primary_key


def primary_key_of(combined: bytes) -> bytes:
    """The primary key within a combined key."""
    return combined[_INT32.size + int(_INT32.unpack_from(combined)[0]) :]


class SubscriptionSerde(Serde[Subscription]):
    """``version (with a bit for "no hash") | instruction | hash? | primary key | partition (int32, from version
    1)``."""

    immutable = True

    def bytes_schema(self) -> Schema:
        return {"format": "subscription of a foreign-key join"}

    def serializer(self, topic: str) -> Callable[[Subscription], bytes]:
        return _write_subscription

    def deserializer(self, topic: str) -> Callable[[bytes], Subscription]:
        def read(data: bytes) -> Subscription:
            version, hash_, start = _read_head(data, 1, topic)
            if version > SUBSCRIPTION_VERSION:
                raise _unknown_version("subscription", version, topic)
            end = len(data) - (_INT32.size if version else 0)
            if end < start or data[1] > max(Instruction):
                raise _malformed("subscription", topic)
            partition = _INT32.unpack_from(data, end)[0] if version else None
            return Subscription(hash_, Instruction(data[1]), data[start:end], partition, version)

        return read


def _write_subscription(subscription: Subscription) -> bytes:
    hash_, instruction, primary_key, partition, version = subscription
    head = bytes((version, instruction)) + hash_ if hash_ else bytes((version | _NO_HASH, instruction))
    if partition is None:
        return head + primary_key
    return head + primary_key + _INT32.pack(partition)


class ResponseSerde(Serde[Response]):
    """``version (with a bit for "no hash") | hash? | value?``. An empty value is read as None, as in Java."""

    def __init__(self, value: AnySerde) -> None:
        self.value = value

    def bytes_schema(self) -> Schema:
        return {"format": "answer of a foreign-key join", "value": schema_of(self.value)}

    def serializer(self, topic: str) -> Callable[[Response], bytes]:
        write = self.value.serializer(topic)

        def write_response(response: Response) -> bytes:
            hash_, value, _ = response
            head = bytes((RESPONSE_VERSION,)) + hash_ if hash_ else bytes((RESPONSE_VERSION | _NO_HASH,))
            return head if value is None else head + write(value)

        return write_response

    def deserializer(self, topic: str) -> Callable[[bytes], Response]:
        read = self.value.deserializer(topic)

        def read_response(data: bytes) -> Response:
            version, hash_, start = _read_head(data, 0, topic)
            if version != RESPONSE_VERSION:
                raise _unknown_version("answer", version, topic)
            return Response(hash_, read(data[start:]) if len(data) > start else None)

        return read_response


def _read_head(data: bytes, between: int, topic: str) -> tuple[int, bytes | None, int]:
    """Version, hash, and the position of the rest. ``between`` is the number of bytes between version and hash."""
    start = 1 + between
    if len(data) < start:
        raise _malformed("message", topic)
    if data[0] & _NO_HASH:
        return data[0] & _VERSION, None, start
    end = start + _HASH_BYTES
    if len(data) < end:
        raise _malformed("message", topic)
    return data[0], data[start:end], end


def _malformed(what: str, topic: str) -> SerializationError:
    return SerializationError(
        f"the bytes are not {what} of a foreign-key join",
        where=f"topic {topic}",
        hint="only the application itself may write to this topic; reset the application if others wrote to it",
    )


def _unknown_version(what: str, version: int, topic: str) -> SerializationError:
    return SerializationError(
        f"a {what} of a foreign-key join has the unknown version {version}",
        where=f"topic {topic}",
        hint="a newer version of the application wrote it: upgrade this instance",
    )
