"""Versioned stores: the latest value of each key, and earlier ones, by time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from pystreams.errors import SchemaRegistryError
from pystreams.record import NO_HEADERS
from pystreams.state.layers.version_chain import Version
from pystreams.state.layers.versioned_layer import NOT_PUT, VALID_TO_UNDEFINED, VersionedLayer
from pystreams.state.store import Logged, Store, StoreContext, wrong_value

K = TypeVar("K")
V = TypeVar("V")


class VersionedRecord(NamedTuple, Generic[V]):
    """A value, the time from which it was valid (ms), and the time at which another value or a deletion replaced it;
    None: it is still valid. Source: org.apache.kafka.streams.state.VersionedRecord."""

    value: V
    timestamp: int
    valid_to: int | None


class VersionedStore(Store, Generic[K, V]):
    """Values by key and time. ``retention_ms`` is the length of the history before the greatest time put: versions
    within it may be put, and times within it may be read. Never cached. The changelog has each version with its time.

    Source: VersionedKeyValueStore, MeteredVersionedKeyValueStore (KIP-889, KIP-914).
    """

    __slots__ = ("_expired", "_layer", "_log", "decode_value", "encode_value", "valid_to")

    def __init__(self, context: StoreContext, layer: VersionedLayer) -> None:
        super().__init__(context)
        serde = context.spec.value_serde
        #: Serializes and deserializes a value.
        self.encode_value: Callable[[Any], bytes] = serde.serializer(context.topic)
        self.decode_value: Callable[[bytes], Any] = serde.deserializer(context.topic)
        self._layer = layer
        self._log = context.log_change
        self._expired = context.expired
        #: The result of the last ``write``.
        self.valid_to = NOT_PUT

    def logged(self) -> Iterator[Logged]:
        """All versions, including deletions. Putting them in the order of time, and at equal times in this order,
        gives the same history."""
        latest_ms = -1
        for key, since, value in self._layer.versions():
            latest_ms = max(latest_ms, since)
            yield key, value, since
        observed_ms = self._layer.time.ms
        if observed_ms > latest_ms:
            # A deletion at the time of the version that it deletes leaves no entry, but has advanced the store's stream
            # time.
            unknown = self._layer.unknown_key()
            yield from ((unknown, value, observed_ms) for value in (b"", None))

    def latest(self) -> Iterator[Logged]:
        """The latest version of each key that has one, by key."""
        return ((key, version.value, version.since) for key, version in self._layer.latest_entries())

    # The methods for operators, by serialized keys.

    def on_flush(self, listener: object, send_old_values: bool, failed: object = None) -> None:
        """Nothing is cached, so nothing is flushed."""

    def write(self, key: bytes, value: V | None, timestamp: int) -> int:
        """As ``put``; None deletes."""
        value_bytes = None if value is None else self.encode_value(value)
        layer = self._layer
        if layer.too_late(timestamp):
            self._expired()
            valid_to = NOT_PUT
        else:
            valid_to = layer.put(key, value_bytes, timestamp)
        # As in Java, a version that is too late is logged as well.
        self._log(key, value_bytes, timestamp, NO_HEADERS)
        self.valid_to = valid_to
        return valid_to

    def read(self, key: bytes) -> tuple[V, int] | None:
        """Value and time of the latest version."""
        latest = self._layer.latest(key)
        return None if latest is None else (self.decode_value(latest.value or b""), latest.since)

    #: The same as ``read``, because nothing is cached.
    read_flushed = read

    def read_as_of(self, key: bytes, timestamp: int) -> tuple[V, int] | None:
        """Value and time of the version that was valid at a time."""
        found = self._layer.as_of(key, timestamp)
        return None if found is None else (self.decode_value(found[0].value or b""), found[0].since)

    # The methods for programs.

    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Set the value that is valid for ``key`` from ``timestamp`` to the next known version; None: the key is
        deleted.

        Returns the start of the next version, ``VALID_TO_UNDEFINED`` (-1) if there is none, or ``NOT_PUT`` if the
        timestamp is before the history.
        """
        key_bytes, time_ms = self._encoded(key), self._ms(timestamp)
        try:
            return self.write(key_bytes, value, time_ms)
        except SchemaRegistryError:
            raise
        except Exception as error:
            raise wrong_value(self.spec, value, error) from error

    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Delete ``key`` from ``timestamp`` on. Returns the version that was valid then."""
        key_bytes = self._encoded(key)
        if self._layer.too_late(self._ms(timestamp)):
            self.write(key_bytes, None, timestamp)
            return None
        found = self._as_of(key_bytes, timestamp)
        self.write(key_bytes, None, timestamp)
        return found

    def get(self, key: K, as_of: int | None = None) -> VersionedRecord[V] | None:
        """The latest version of ``key``, or the one that was valid at ``as_of``. None if there was none, or if the
        time is before the history and the latest version is newer."""
        key_bytes = self._encoded(key)
        if as_of is not None:
            return self._as_of(key_bytes, self._ms(as_of))
        latest = self._layer.latest(key_bytes)
        return None if latest is None else self._record(latest, VALID_TO_UNDEFINED)

    def versions(self, key: K) -> list[VersionedRecord[V]]:
        """All versions of ``key`` that are still kept, the earliest first."""
        return [self._record(*found) for found in self._layer.history(self._encoded(key))]

    def _as_of(self, key: bytes, timestamp: int) -> VersionedRecord[V] | None:
        found = self._layer.as_of(key, timestamp)
        return None if found is None else self._record(*found)

    def _record(self, version: Version, until: int) -> VersionedRecord[V]:
        value: V = self.decode_value(version.value or b"")
        return VersionedRecord(value, version.since, None if until == VALID_TO_UNDEFINED else until)
