"""The entry of a buffer of held-back changes, and its bytes in the changelog, equal to those of Kafka Streams."""

from __future__ import annotations

from struct import Struct, error
from typing import NamedTuple

from pystreams.errors import StateCorruptedError
from pystreams.record import Headers, RecordContext

_TIMES = Struct(">qq")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
#: Special lengths: there is no value; the old value is the prior one.
_NULL, _SAME = -1, -2
_NULL_BYTES = _INT32.pack(_NULL)
_SAME_BYTES = _INT32.pack(_SAME)
#: The size of timestamp, offset and partition in a record's context. Topic and headers add to it.
_CONTEXT_BYTES = 20


class BufferedChange(NamedTuple):
    """The last change of a key, at the position of the first one that is still held back.

    ``time`` determines the position, in ms. ``prior`` is the key's value before the first change, ``old`` its value
    before the last one. ``context`` is that of the last change. Source: BufferKey, BufferValue.
    """

    time: int
    prior: bytes | None
    old: bytes | None
    new: bytes | None
    context: RecordContext

    def size_bytes(self, key: bytes) -> int:
        """The entry's size towards the limit of the buffer. Source: BufferValue.residentMemorySizeEstimate."""
        topic, _, _, _, headers = self.context
        size = 8 + len(key) + _CONTEXT_BYTES + (0 if topic is None else len(topic))
        if self.prior is not None:
            size += len(self.prior)
        if self.old is not None and self.old != self.prior:
            size += len(self.old)
        if self.new is not None:
            size += len(self.new)
        for name, value in headers:
            size += len(name) + (0 if value is None else len(value))
        return size

    def packed(self) -> bytes:
        """The changelog's value, version 3. Source: BufferValue.serialize, ProcessorRecordContext.serialize."""
        topic, partition, offset, timestamp, headers = self.context
        # In punctuation there is no topic; the format writes an empty one.
        parts = [_TIMES.pack(timestamp, offset), _sized((topic or "").encode()), _INT32.pack(partition)]
        parts.append(_INT32.pack(len(headers)))
        for name, value in headers:
            parts += (_sized(name.encode()), _sized(value))
        parts.append(_sized(self.prior))
        same = self.old is not None and self.old == self.prior
        parts += (_SAME_BYTES if same else _sized(self.old), _sized(self.new), _INT64.pack(self.time))
        return b"".join(parts)


def unpacked(value: bytes) -> BufferedChange:
    """The entry for a changelog value. Raises ``StateCorruptedError`` for other bytes."""
    try:
        reader = _Reader(value)
        context = reader.context()
        prior = reader.sized()
        length = reader.int32()
        old = prior if length == _SAME else reader.bytes_of(length)
        new = reader.sized()
        return BufferedChange(reader.last_int64(), prior, old, new, context)
    except (error, ValueError) as cause:
        raise StateCorruptedError(
            "a changelog of held-back changes has an entry that cannot be read",
            why="it is damaged, or written by Kafka Streams before 2.4",
            hint="let Kafka Streams 2.4 or later run once, or reset the application",
        ) from cause


def _sized(value: bytes | None) -> bytes:
    return _NULL_BYTES if value is None else _INT32.pack(len(value)) + value


class _Reader:
    """Reads the bytes of an entry one part after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def int32(self) -> int:
        value: int = _INT32.unpack_from(self._data, self._position)[0]
        self._position += _INT32.size
        return value

    def bytes_of(self, length: int) -> bytes | None:
        if length == _NULL:
            return None
        start, self._position = self._position, self._position + length
        if length < 0 or self._position > len(self._data):
            raise ValueError(f"the length {length} is not valid")
        return self._data[start : self._position]

    def sized(self) -> bytes | None:
        return self.bytes_of(self.int32())

    def context(self) -> RecordContext:
        timestamp, offset = _TIMES.unpack_from(self._data, self._position)
        self._position += _TIMES.size
        topic = self.sized() or b""
        partition = self.int32()
        headers: Headers = tuple(self._header() for _ in range(self.int32()))
        return topic.decode() or None, partition, offset, timestamp, headers

    def _header(self) -> tuple[str, bytes | None]:
        name = self.sized() or b""
        return name.decode(), self.sized()

    def last_int64(self) -> int:
        if self._position + _INT64.size != len(self._data):
            raise ValueError(f"{len(self._data) - self._position} bytes are left over")
        value: int = _INT64.unpack_from(self._data, self._position)[0]
        return value
