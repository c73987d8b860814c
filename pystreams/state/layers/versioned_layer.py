"""The bytes of versioned stores: the latest version of each key by itself, earlier ones in the segment of their end.

Source: RocksDBVersionedStore.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pystreams.record import RecordBatch
from pystreams.state.formats import TIMESTAMP_BYTES, pack_int64, unpack_int64
from pystreams.state.layers.layer import AsLogged, Layer
from pystreams.state.layers.restored_time import RestoredTime, packed_time, unpacked_time
from pystreams.state.layers.time_layer import existing_segments, expired_segments
from pystreams.state.layers.version_chain import Version, VersionChain
from pystreams.state.overlay import Overlay
from pystreams.state.spec import StoreSpec
from pystreams.stream_time import NO_TIME, TIME_MAX, Observed

#: Results of a put: for the latest version, which has no end yet, and for a version that was too late to be stored.
VALID_TO_UNDEFINED: Final = -1
NOT_PUT: Final = -(1 << 63)

#: The prefix of latest versions. It sorts after all segments, so that segments expire without them.
_LATEST = pack_int64(TIME_MAX)


def segment_interval_ms(history_ms: int) -> int:
    """The length of a segment, in ms. Source: RocksDbVersionedKeyValueBytesStoreSupplier.defaultSegmentInterval."""
    if history_ms <= 60_000:
        return max(history_ms // 3, 2_000)
    if history_ms <= 300_000:
        return max(history_ms // 5, 20_000)
    if history_ms <= 3_600_000:
        return max(history_ms // 12, 60_000)
    return max(history_ms // 24, 300_000)


class VersionedLayer(Layer):
    """Versions by key and time. The store sees the times that are put."""

    restores_unread = False

    __slots__ = (
        "_committed",
        "_history_ms",
        "_interval_ms",
        "_restored_time",
        "_segments",
        "time",
    )

    def __init__(self, spec: StoreSpec, overlay: Overlay, time: Observed) -> None:
        super().__init__(spec, overlay)
        self._history_ms = spec.history_ms or 0
        self._interval_ms = spec.segment_ms or segment_interval_ms(self._history_ms)
        #: Segments that have versions, or had some.
        self._segments: set[int] = set()
        #: The store's stream time.
        self.time = time
        #: The time in force at the last commit, and the time that was seen.
        self._committed = (NO_TIME, NO_TIME)
        self._restored_time = RestoredTime(time)

    @property
    def arrangement(self) -> str:
        return f"{self.spec.kind}/{self._interval_ms}"

    # Reading

    def latest(self, key: bytes) -> Version | None:
        """The latest version, None if the key is deleted."""
        stored = self.overlay.get(_LATEST + key)
        if stored is None:
            return None
        return Version(unpack_int64(stored)[0], stored[TIMESTAMP_BYTES:])

    def as_of(self, key: bytes, time: int) -> tuple[Version, int] | None:
        """The version that was valid at ``time``, and its end; None if there was none, or the history is too short."""
        latest = self.latest(key)
        if latest is not None and latest.since <= time:
            return latest, VALID_TO_UNDEFINED
        if time < self.time.ms - self._history_ms:
            return None
        for segment in self._live_from(time // self._interval_ms):
            chain = self._chain(segment, key)
            if chain is None:
                continue
            if chain.until <= time:
                return None
            if chain.since <= time:
                place, until = chain.find(time)
                version = chain.versions[place]
                return None if version.value is None else (version, until)
        return None

    def history(self, key: bytes) -> Iterator[tuple[Version, int]]:
        """All versions with their ends, the earliest first."""
        for segment in sorted(self._live_from(0)):
            chain = self._chain(segment, key)
            if chain is not None:
                for place in reversed(range(len(chain.versions))):
                    version = chain.versions[place]
                    if version.value is not None:
                        yield version, chain.until if place == 0 else chain.versions[place - 1].since
        latest = self.latest(key)
        if latest is not None:
            yield latest, VALID_TO_UNDEFINED

    def latest_entries(self) -> Iterator[tuple[bytes, Version]]:
        """(key, latest version) of all keys, by key."""
        for key, stored in self.overlay.scan(_LATEST, None):
            yield key[len(_LATEST) :], Version(unpack_int64(stored)[0], stored[TIMESTAMP_BYTES:])

    def versions(self) -> Iterator[tuple[bytes, int, bytes | None]]:
        """(key, since, value) of all versions that are kept, including deletions (value None). Putting them in the
        order of time, and at equal times in this order, gives the same history."""
        for segment in sorted(self._live_from(0)):
            lower, upper = pack_int64(segment), pack_int64(segment + 1)
            for place, packed in self.overlay.scan(lower, upper, upper_inclusive=False):
                key, chain = place[TIMESTAMP_BYTES:], VersionChain.unpacked(packed)
                following = self._begin_behind(segment, key)
                end = TIME_MAX if following is None else following
                # A deletion on its own ends at its start, and another version may start there, too.
                alone = chain.since == chain.until
                for since, value in reversed(chain.versions):
                    if since < end or (alone and since == end):
                        yield key, since, value
                if chain.until < end and not alone:
                    yield key, chain.until, None
        for key, version in self.latest_entries():
            yield key, version.since, version.value

    def _begin_behind(self, segment: int, key: bytes) -> int | None:
        """The start of the key's first version after this segment: in a later segment, or the latest version."""
        for later in sorted(one for one in self._segments if one > segment):
            chain = self._chain(later, key)
            if chain is not None:
                return chain.since
        latest = self.latest(key)
        return None if latest is None else latest.since

    def unknown_key(self) -> bytes:
        """A key that has no version."""
        key = b""
        while self.latest(key) is not None or any(
            self._chain(segment, key) is not None for segment in self._live_from(0)
        ):
            key += b"\x00"
        return key

    def _first_live(self, observed: int) -> int:
        return max(0, observed - self._history_ms) // self._interval_ms

    def _live_from(self, segment: int) -> list[int]:
        """The live segments from this one on, the latest first."""
        first = max(segment, self._first_live(self.time.ms))
        return sorted((one for one in self._segments if one >= first), reverse=True)

    def _chain(self, segment: int, key: bytes) -> VersionChain | None:
        packed = self.overlay.get(pack_int64(segment) + key)
        return None if packed is None else VersionChain.unpacked(packed)

    # Writing

    def too_late(self, time: int) -> bool:
        """Whether a version with this time is too late to be put."""
        return time < self.time.ms - self._history_ms

    def put(self, key: bytes, value: bytes | None, time: int) -> int:
        """Put a version (None: a deletion) that is not too late. Returns its end."""
        if time > self.time.ms:
            self.time.see(time)
        return self._put(key, value, time)

    def _put(self, key: bytes, value: bytes | None, time: int) -> int:
        latest = self.latest(key)
        if latest is not None and time >= latest.since:
            if time > latest.since:
                self._end(time, key, latest)
            self._put_latest(key, value, time)
            return VALID_TO_UNDEFINED
        until = None if latest is None else latest.since
        for segment in self._live_from(time // self._interval_ms):
            chain = self._chain(segment, key)
            if chain is None:
                continue
            if chain.until <= time:
                break
            if chain.since <= time:
                return self._put_within(segment, chain, key, value, time)
            if chain.since < self.time.ms - self._history_ms:
                return NOT_PUT
            until = chain.since
        if until is not None:
            return self._put_before(until, key, value, time)
        if value is None:
            return self._put_deletion(key, time)
        self._put_latest(key, value, time)
        return VALID_TO_UNDEFINED

    def _put_latest(self, key: bytes, value: bytes | None, time: int) -> None:
        self.overlay.put(_LATEST + key, None if value is None else pack_int64(time) + value)

    def _put_within(
        self, segment: int, chain: VersionChain, key: bytes, value: bytes | None, time: int
    ) -> int:
        place, until = chain.find(time)
        before = chain.versions[place]
        if before.since == time:
            chain.versions[place] = Version(time, value)
        elif time // self._interval_ms != segment:
            # The version that the new one ends moves to an earlier segment.
            self._end(time, key, before)
            chain.versions[place] = Version(time, value)
        else:
            chain.versions.insert(place, Version(time, value))
        self._put_chain(segment, key, chain)
        return until

    def _put_before(self, until: int, key: bytes, value: bytes | None, time: int) -> int:
        """Put a version that an existing one ends, if there is none with its time yet."""
        segment = self._live(until)
        if segment is None:
            return NOT_PUT
        chain = self._chain(segment, key)
        if chain is None:
            chain = VersionChain(until, [Version(time, value)])
        elif chain.until <= time:
            chain.add_latest(time, until, value)
        else:
            chain.add_earliest(time, value)
        self._put_chain(segment, key, chain)
        return until

    def _put_deletion(self, key: bytes, time: int) -> int:
        """Put a deletion after all versions."""
        segment = self._live(time)
        if segment is None:
            return NOT_PUT
        chain = self._chain(segment, key)
        if chain is None:
            self._put_chain(segment, key, VersionChain.of_deletion(time))
        elif chain.until != time:
            chain.add_latest(chain.until, time, None)
            self._put_chain(segment, key, chain)
        return VALID_TO_UNDEFINED

    def _end(self, time: int, key: bytes, version: Version) -> None:
        """Store a version that ends at ``time``, unless it is past the history."""
        segment = self._live(time)
        if segment is None:
            return
        chain = self._chain(segment, key)
        if chain is None:
            chain = VersionChain(time, [version])
        else:
            chain.add_latest(version.since, time, version.value)
        self._put_chain(segment, key, chain)

    def _live(self, time: int) -> int | None:
        segment = time // self._interval_ms
        return segment if segment >= self._first_live(self.time.ms) else None

    def _put_chain(self, segment: int, key: bytes, chain: VersionChain) -> None:
        self._segments.add(segment)
        self.overlay.put(pack_int64(segment) + key, chain.packed())

    # Restore and commit

    def limit_time(self, time_ms: int, seen_ms: int) -> None:
        if self._restored_time.limit(time_ms, seen_ms):
            self._committed = self.time.ms, self.time.seen_ms

    def restored_batch(self, batch: RecordBatch) -> Mapping[Any, bytes | None]:
        """Also advances stream time."""
        for key, value, time in zip(batch.keys, batch.values, batch.timestamps, strict=True):
            if key is not None and not self.too_late(time):
                self._restored_time.restored(time)
                self._put(key, value, time)
        changes = dict(self.overlay.changes)
        self.overlay.clear()
        self._committed = self.time.ms, self.time.seen_ms
        return changes

    def as_logged(self, changelog_key: bytes, time: int) -> AsLogged | None:
        """The version that was valid at that time, as a record of its own."""
        found = self.as_of(changelog_key, time)
        if found is None and self.too_late(time):
            return None
        return (None if found is None else found[0].value), time, None

    def marks(self) -> dict[str, bytes]:
        return {
            "layer": pack_int64(self.time.ms),
            "seen": packed_time(self.time.held_ms),
            "restored": self._restored_time.mark(),
        }

    def load(self, marks: Mapping[str, bytes]) -> None:
        if marks["layer"]:
            self._committed = unpack_int64(marks["layer"])[0], unpacked_time(marks["seen"])
            self.time.reset(*self._committed)
        self._restored_time.load(marks["restored"])
        self._segments.update(existing_segments(self.overlay.table, _LATEST))

    def continue_as(self, other: Layer) -> None:
        assert isinstance(other, VersionedLayer), "it is the same store"
        self._committed = other._committed
        self.time.reset(*self._committed)
        self._segments = set(other._segments)

    def expiry(self) -> tuple[Any, Any] | None:
        return expired_segments(self._segments, self._first_live(self.time.ms))

    def after_commit(self) -> None:
        self._committed = self.time.ms, self.time.seen_ms
        first = self._first_live(self.time.ms)
        self._segments = {segment for segment in self._segments if segment >= first}

    def abort(self) -> None:
        self.overlay.clear()
        self.time.reset(*self._committed)
