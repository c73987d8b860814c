"""Versioned stores: not only the latest value of each key, but also those before it, by time."""

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
    """A value, from when on it was the key's one (ms), and when another or a deletion took its place; None: it still
    is. Source: org.apache.kafka.streams.state.VersionedRecord."""

    value: V
    timestamp: int
    valid_to: int | None


class VersionedStore(Store, Generic[K, V]):
    """Values by key and time. ``retention_ms`` is how far its history goes back from the greatest time put: so late a
    version may be put, and so old a time be asked about. Never cached. The changelog has each version with its time.

    Source: VersionedKeyValueStore, MeteredVersionedKeyValueStore (KIP-889, KIP-914).
    """

    __slots__ = ("_expired", "_layer", "_log", "decode_value", "encode_value", "valid_to")

    def __init__(self, context: StoreContext, layer: VersionedLayer) -> None:
        super().__init__(context)
        serde = context.spec.value_serde
        #: Bytes of a value, and back.
        self.encode_value: Callable[[Any], bytes] = serde.serializer(context.topic)
        self.decode_value: Callable[[bytes], Any] = serde.deserializer(context.topic)
        self._layer = layer
        self._log = context.log_change
        self._expired = context.expired
        #: What the last ``write`` gave.
        self.valid_to = NOT_PUT

    def logged(self) -> Iterator[Logged]:
        """All versions, deletions among them. Put in the order of time, those of one key and time as they come, they
        give the same history."""
        latest_ms = -1
        for key, since, value in self._layer.versions():
            latest_ms = max(latest_ms, since)
            yield key, value, since
        observed_ms = self._layer.observed_ms
        if observed_ms > latest_ms:
            # A deletion at the time of the version that it deletes leaves nothing but the store's stream time.
            unknown = self._layer.unknown_key()
            yield from ((unknown, value, observed_ms) for value in (b"", None))

    def latest(self) -> Iterator[Logged]:
        """The latest version of each key that has one, by key."""
        return ((key, version.value, version.since) for key, version in self._layer.latest_entries())

    # By serialised keys, for operators.

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
        # As in Java, what was too late is logged as well.
        self._log(key, value_bytes, timestamp, NO_HEADERS)
        self.valid_to = valid_to
        return valid_to

    def read(self, key: bytes) -> tuple[V, int] | None:
        """Value and time of the latest version."""
        latest = self._layer.latest(key)
        return None if latest is None else (self.decode_value(latest.value or b""), latest.since)

    #: The same, for who reads what other steps have been told.
    read_flushed = read

    def read_as_of(self, key: bytes, timestamp: int) -> tuple[V, int] | None:
        """The same of the version that was valid at a time."""
        found = self._layer.as_of(key, timestamp)
        return None if found is None else (self.decode_value(found[0].value or b""), found[0].since)

    # The store as programs see it.

    def put(self, key: K, value: V | None, timestamp: int) -> int:
        """Set the value that ``key`` has from ``timestamp`` on, up to the next one that is known; None: it has none.

        Gives when that next one begins, ``VALID_TO_UNDEFINED`` (-1) if there is none, or ``NOT_PUT`` if the time lies
        further back than the history.
        """
        key_bytes, time_ms = self._encoded(key), self._ms(timestamp)
        try:
            return self.write(key_bytes, value, time_ms)
        except SchemaRegistryError:
            raise
        except Exception as error:
            raise wrong_value(self.spec, value, error) from error

    def delete(self, key: K, timestamp: int) -> VersionedRecord[V] | None:
        """Delete ``key`` from ``timestamp`` on; gives the version that was valid then."""
        key_bytes = self._encoded(key)
        if self._layer.too_late(self._ms(timestamp)):
            self.write(key_bytes, None, timestamp)
            return None
        found = self._as_of(key_bytes, timestamp)
        self.write(key_bytes, None, timestamp)
        return found

    def get(self, key: K, as_of: int | None = None) -> VersionedRecord[V] | None:
        """The latest version of ``key``, or the one at the time ``as_of``. None: it had none then, or the time lies
        further back than the history and the latest version is not that old."""
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
