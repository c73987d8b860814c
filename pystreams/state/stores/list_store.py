"""List stores: any number of values by key, in the order in which they were added."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Generic, TypeVar

from pystreams.errors import SchemaRegistryError, StateCorruptedError
from pystreams.record import NO_HEADERS
from pystreams.state.iterators import StoreIterator
from pystreams.state.overlay import Overlay
from pystreams.state.store import Logged, Store, StoreContext, plain_pairs, wrong_value

K = TypeVar("K")
V = TypeVar("V")

#: The head of a list: the format (each element has its length before it), and the number of elements.
_HEAD = Struct(">Bi")
_LENGTH = Struct(">i")
_VARIABLE_SIZE = 1


def with_element(packed: bytes | None, element: bytes) -> bytes:
    """The bytes of a list with one more element; None stands for an empty list. Source: ListSerializer."""
    if packed is None:
        return _HEAD.pack(_VARIABLE_SIZE, 1) + _LENGTH.pack(len(element)) + element
    count = _HEAD.unpack_from(packed)[1]
    head = _HEAD.pack(_VARIABLE_SIZE, count + 1)
    return head + packed[_HEAD.size :] + _LENGTH.pack(len(element)) + element


def elements(packed: bytes) -> list[bytes]:
    """The elements of a list. Source: ListDeserializer."""
    strategy, count = _HEAD.unpack_from(packed)
    if strategy != _VARIABLE_SIZE:
        raise StateCorruptedError(
            f"a list starts with the byte {strategy}", why=f"it must start with {_VARIABLE_SIZE}"
        )
    found: list[bytes] = []
    position = _HEAD.size
    for _ in range(count):
        length = _LENGTH.unpack_from(packed, position)[0]
        position += _LENGTH.size
        found.append(packed[position : position + length])
        position += length
    return found


class ListStore(Store, Generic[K, V]):
    """Lists of values by key. Each change writes the whole list to the changelog. Never cached.

    Source: ListValueStore, ChangeLoggingListValueBytesStore.
    """

    __slots__ = ("_cell", "_log", "decode_value", "encode_value", "overlay")

    def __init__(self, context: StoreContext, overlay: Overlay) -> None:
        super().__init__(context)
        serde = context.spec.value_serde
        #: Serializes and deserializes an element.
        self.encode_value: Callable[[Any], bytes] = serde.serializer(context.topic)
        self.decode_value: Callable[[bytes], Any] = serde.deserializer(context.topic)
        self.overlay = overlay
        self._cell = context.cell
        self._log = context.log_change

    def logged(self) -> Iterator[Logged]:
        return plain_pairs(self.overlay.scan(None, None))

    # The methods for operators, by serialized keys.

    def append(self, key: bytes, element: bytes) -> None:
        """Add a serialized element."""
        self._write(key, with_element(self.overlay.get(key), element))

    def remove(self, key: bytes) -> None:
        """Delete the list, if there is one."""
        self._write(key, None)

    def _write(self, key: bytes, packed: bytes | None) -> None:
        self.overlay.put(key, packed)
        self._log(key, packed, self._cell.record[3], NO_HEADERS)

    # The methods for programs.

    def get(self, key: K) -> list[V] | None:
        """The values of ``key``, the oldest first; None if there are none."""
        packed = self.overlay.get(self._encoded(key))
        return None if packed is None else self._values(packed)

    def put(self, key: K, value: V | None) -> None:
        """Add a value to the list of ``key``; None deletes the list."""
        key_bytes = self._encoded(key)
        if value is None:
            self.remove(key_bytes)
        else:
            self.append(key_bytes, self._value_bytes(value))

    def _value_bytes(self, value: V) -> bytes:
        try:
            return self.encode_value(value)
        except SchemaRegistryError:
            raise
        except Exception as error:
            raise wrong_value(self.spec, value, error) from error

    def delete(self, key: K) -> list[V] | None:
        """Delete the list of ``key``. Returns its values."""
        values = self.get(key)
        self.remove(self._encoded(key))
        return values

    def range(self, from_key: K | None, to_key: K | None) -> StoreIterator[K, V]:
        """(key, value) for each value of the keys from ``from_key`` to ``to_key``, both inclusive, in the order of
        the keys' bytes; None: open end."""
        lower, upper = self._bound(from_key), self._bound(to_key)
        return self._iterator(
            iter(()) if self._reversed_bounds(lower, upper) else self.overlay.scan(lower, upper)
        )

    def all(self) -> StoreIterator[K, V]:
        """(key, value) for each value of all keys, in the order of the keys' bytes."""
        return self._iterator(self.overlay.scan(None, None))

    def approximate_count(self) -> int:
        """Roughly the number of keys."""
        return self.overlay.approximate_count()

    def _values(self, packed: bytes) -> list[V]:
        decode = self.decode_value
        return [decode(element) for element in elements(packed)]

    def _iterator(self, lists: Iterator[tuple[bytes, bytes]]) -> StoreIterator[K, V]:
        decode_key, decode_value = self.decode_key, self.decode_value
        pairs = ((key, element) for key, packed in lists for element in elements(packed))
        return self._tracked(
            StoreIterator(self.name, pairs, lambda key, element: (decode_key(key), decode_value(element)))
        )
